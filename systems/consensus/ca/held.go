package ca

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
)

// held is what the files of an identity hold.
type held struct {
	cert   *tls.Certificate
	pool   *x509.CertPool // the authorities
	prints []string       // theirs
}

// files are those of an identity, which are read again when they have changed. They are taken
// together or not at all: while some have been replaced and others not, what was before stays.
//
//  1. ca.crt is replaced by that of another authority alone, the certificate is not yet.
//  2. Taken by itself it would have this process refuse all that the others show, while it shows
//     what they are about to refuse.
type files struct {
	paths   [3]string // of the certificate, its key, the authorities
	cluster string
	role    Role

	mu   sync.Mutex
	read [3]os.FileInfo // of the files that held was made of, or that were found to be no good
	held *held
	err  error // of those
}

// current is what is to be used. What the files hold that is not good is an error, and what is
// used is that of before.
func (f *files) current() (h *held, changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3]os.FileInfo
	for i, path := range f.paths {
		now[i] = stat(path)
	}
	if unchanged(f.read, now) {
		return f.held, false, f.err
	}
	next, err := f.load()
	f.read, f.err = now, err
	if err != nil {
		return f.held, false, err
	}
	f.held = next
	return next, true, nil
}

// unchanged tells whether files are as they were: a file that was replaced is another one,
// even of the same size and time.
func unchanged(was, is [3]os.FileInfo) bool {
	for i := range is {
		switch {
		case was[i] == nil || is[i] == nil:
			return false
		case !os.SameFile(was[i], is[i]) || was[i].Size() != is[i].Size() || !was[i].ModTime().Equal(is[i].ModTime()) || was[i].Mode() != is[i].Mode():
			return false
		}
	}
	return true
}

func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil // reading it will say why
	}
	return info
}

// load reads the files; the time at which they are good is for those who are shown them.
func (f *files) load() (*held, error) {
	certFile, keyFile, authorityFile := f.paths[0], f.paths[1], f.paths[2]
	authorities, err := readCertificates(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("loading an identity's authority: %w", err)
	}
	cert, key, err := read(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("loading an identity: %w", err)
	}
	h := &held{cert: &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, pool: poolOf(authorities)}
	var signed bool
	var why error
	for _, a := range authorities {
		if !a.IsCA {
			return nil, fmt.Errorf("%s holds the certificate of %s, which is no authority", authorityFile, a.Subject.CommonName)
		}
		h.prints = append(h.prints, fingerprint(a))
		if why = cert.CheckSignatureFrom(a); why == nil {
			signed = true
		}
	}
	if !signed {
		return nil, fmt.Errorf("%s is not signed by its authority: %w", certFile, why)
	}
	if cluster, role := identity(cert); f.held != nil && (cluster != f.cluster || role != f.role) {
		return nil, fmt.Errorf("%w: %s is of a %s of %q, and was of a %s of %q", ErrSubject, certFile, role, cluster, f.role, f.cluster)
	}
	return h, nil
}

func poolOf(authorities []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a)
	}
	return pool
}

// fingerprint is the beginning of a certificate's SHA-256.
func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:8])
}
