package ca

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"skerry/internal/advice"
	"skerry/internal/whole"
)

// Renew makes another certificate out to who has one, for the same key, good for so many
// days from now on, and puts it in the old one's place: whoever reads the file finds one or
// the other.
func (a *Authority) Renew(name string, days int, now time.Time) error {
	if !validName.MatchString(name) || name == caName {
		return fmt.Errorf("%w: %q cannot be a name", ErrSubject, name)
	}
	path := filepath.Join(a.dir, name+".crt")
	old, err := readCertificate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("renewing the certificate of %s: %w", name, err), "issue a first one with --add")
	}
	if err != nil {
		return fmt.Errorf("renewing the certificate of %s: %w", name, err)
	}
	cluster, role := identity(old)
	if cluster != a.cluster {
		return fmt.Errorf("%w: %s is of the cluster %q, not %q", ErrSubject, path, cluster, a.cluster)
	}
	s := Subject{Name: name, Role: role, Hosts: old.DNSNames}
	for _, ip := range old.IPAddresses {
		s.Hosts = append(s.Hosts, ip.String())
	}
	der, err := a.sign(s, old.PublicKey, days, now)
	if err != nil {
		return err
	}
	return replace(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// replace puts a file in another's place, on disk when it returns.
func replace(path string, data []byte, mode os.FileMode) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing %s: %w", path, err) // of one that was interrupted
	}
	if err := Create(next, data, mode); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(next))
	}
	return whole.SyncDir(filepath.Dir(path))
}

// pair is a certificate with its key, read again when its files have changed.
type pair struct {
	certFile, keyFile string
	cluster           string
	role              Role
	authority         *x509.Certificate

	mu   sync.Mutex
	read [2]os.FileInfo // of the files that cert was made of, or that were found to be no good
	cert *tls.Certificate
	err  error // of those
}

// unchanged tells whether files are as they were: a file that was replaced is another one,
// even of the same size and time.
func unchanged(was, is [2]os.FileInfo) bool {
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

// current is the certificate to show. What the files hold that is not good is an error, and
// the certificate the one before.
func (p *pair) current() (cert *tls.Certificate, changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := [2]os.FileInfo{stat(p.certFile), stat(p.keyFile)}
	if unchanged(p.read, now) {
		return p.cert, false, p.err
	}
	next, err := p.load()
	p.read, p.err = now, err
	if err != nil {
		return p.cert, false, err
	}
	p.cert = next
	return next, true, nil
}

// load reads the files; the time at which they are good is for those who are shown them.
func (p *pair) load() (*tls.Certificate, error) {
	cert, key, err := read(p.certFile, p.keyFile)
	if err != nil {
		return nil, fmt.Errorf("loading an identity: %w", err)
	}
	if err := cert.CheckSignatureFrom(p.authority); err != nil {
		return nil, fmt.Errorf("%s is not signed by its authority: %w", p.certFile, err)
	}
	if cluster, role := identity(cert); p.cert != nil && (cluster != p.cluster || role != p.role) {
		return nil, fmt.Errorf("%w: %s is of a %s of %q, and was of a %s of %q", ErrSubject, p.certFile, role, cluster, p.role, p.cluster)
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}
