package ca

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"skerry/internal/base/advice"
)

// Identity is a certificate with its key and the authorities that it trusts. Their files may be replaced at any time: a
// connection uses the contents at the time when it is made.
type Identity struct {
	Name    string
	Cluster string
	Role    Role
	files   *credentialFiles
}

// Load reads an identity. The file of authorities may hold several, which are all trusted. It returns ErrExpired for a
// certificate that is not valid now, and ErrExposed for a key that others can read.
func Load(certFile, keyFile, authorityFile string, now time.Time) (Identity, error) {
	f := &credentialFiles{paths: [3]string{certFile, keyFile, authorityFile}}
	held, _, err := f.current()
	if err != nil {
		return Identity{}, err
	}
	cert := held.cert.Leaf
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return Identity{}, advice.With(fmt.Errorf("%w: %s is good from %s to %s", ErrExpired,
			certFile, cert.NotBefore.Format(time.DateTime), cert.NotAfter.Format(time.DateTime)),
			"renew it with `hydra init DIR --renew %s`, and look at the clock", cert.Subject.CommonName)
	}
	f.cluster, f.role = subjectOf(cert)
	return Identity{cert.Subject.CommonName, f.cluster, f.role, f}, nil
}

// Authorities returns the fingerprints of the trusted authorities, in the order of their file.
func (i Identity) Authorities() []string { return i.credentials().prints }

// Hosts returns the names and addresses that the certificate is for.
func (i Identity) Hosts() []string { return hostsOf(i.credentials().cert.Leaf) }

// Expires returns the end of the certificate.
func (i Identity) Expires() time.Time { return i.credentials().cert.Leaf.NotAfter }

func (i Identity) credentials() *credentials {
	h, _, _ := i.files.current()
	return h
}

func (i Identity) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return i.credentials().cert, nil
}

// Server returns the configuration of a listener for peers of the same cluster and roles. A nil clock is the machine's.
func (i Identity) Server(clock func() time.Time, roles ...Role) *tls.Config {
	config := func() *tls.Config {
		c := i.Client(clock, roles...)()
		c.GetCertificate = i.getCertificate
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, c.RootCAs
		// A resumed session would bypass the current authorities.
		c.SessionTicketsDisabled = true
		return c
	}
	listener := config()
	listener.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := config()
		c.NextProtos = []string{"h2", "http/1.1"} // as http.Server sets them
		return c, nil
	}
	return listener
}

// Client returns a function for the configuration of one connection to peers of the same cluster and roles.
func (i Identity) Client(clock func() time.Time, roles ...Role) func() *tls.Config {
	return func() *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Time: clock, RootCAs: i.credentials().pool, VerifyConnection: i.verify(roles),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.getCertificate(nil) },
		}
	}
}

// Front returns the configuration of a public listener, for browsers without a certificate.
func (i Identity) Front(clock func() time.Time) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: i.getCertificate, Time: clock}
}

// Trust returns the configuration of a connection to a server of any cluster of the authorities, by its address.
func (i Identity) Trust() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.credentials().pool}
}

// Trust is Identity.Trust for a client that has only the certificates of the authorities.
func Trust(authorityFile string) (func() *tls.Config, error) {
	authorities, err := readCertificates(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("loading the authority's certificate: %w", err)
	}
	pool := newPool(authorities)
	return func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool} }, nil
}

func (i Identity) verify(roles []Role) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return fmt.Errorf("%w: there is none", ErrPeer)
		}
		cert := s.PeerCertificates[0]
		cluster, role := subjectOf(cert)
		if cluster != i.Cluster {
			return fmt.Errorf("%w: %s is of the cluster %q, not %q", ErrPeer, cert.Subject.CommonName, cluster, i.Cluster)
		}
		if !slices.Contains(roles, role) {
			return fmt.Errorf("%w: %s is %q, not one of %q", ErrPeer, cert.Subject.CommonName, role, roles)
		}
		return nil
	}
}

type credentials struct {
	cert   *tls.Certificate
	pool   *x509.CertPool // the authorities
	prints []string       // theirs
}

// credentialFiles are the files of an identity, which are read again after a change.
//
// Invariant: new contents are used only if all files are valid together. Otherwise the old contents stay:
//
//  1. ca.crt is replaced by that of another authority. The certificate is not replaced yet.
//  2. If ca.crt were used alone, this process would reject the certificates of all others, and they would soon reject its
//     own.
type credentialFiles struct {
	paths   [3]string // of the certificate, its key, the authorities
	cluster string
	role    Role

	mu   sync.Mutex
	read [3]os.FileInfo // of the files that held was made of, or that were found to be no good
	held *credentials
	err  error // of those
}

// current returns the credentials to use. If the files are invalid, it returns an error and the previous credentials.
func (f *credentialFiles) current() (h *credentials, changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3]os.FileInfo
	for i, path := range f.paths {
		now[i], _ = os.Stat(path) // reading it returns the error
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

// unchanged reports whether files are unchanged. A replaced file counts as changed even if its size and time are the same.
func unchanged(was, is [3]os.FileInfo) bool {
	for i := range is {
		if was[i] == nil || is[i] == nil || !os.SameFile(was[i], is[i]) || was[i].Size() != is[i].Size() ||
			!was[i].ModTime().Equal(is[i].ModTime()) || was[i].Mode() != is[i].Mode() {
			return false
		}
	}
	return true
}

// load reads the files. It does not check validity in time, which is the task of peers.
func (f *credentialFiles) load() (*credentials, error) {
	certFile, authorityFile := f.paths[0], f.paths[2]
	authorities, err := readCertificates(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("loading an identity's authority: %w", err)
	}
	pair, err := loadPair(certFile, f.paths[1])
	if err != nil {
		return nil, fmt.Errorf("loading an identity: %w", err)
	}
	h := &credentials{cert: &pair, pool: newPool(authorities)}
	var signed bool
	var why error
	for _, a := range authorities {
		if !a.IsCA {
			return nil, fmt.Errorf("%s holds the certificate of %s, which is not an authority", authorityFile, a.Subject.CommonName)
		}
		h.prints = append(h.prints, fingerprint(a))
		if why = pair.Leaf.CheckSignatureFrom(a); why == nil {
			signed = true
		}
	}
	if !signed {
		return nil, fmt.Errorf("%s is not signed by its authority: %w", certFile, why)
	}
	if cluster, role := subjectOf(pair.Leaf); f.held != nil && (cluster != f.cluster || role != f.role) {
		return nil, fmt.Errorf("%w: %s is of a %s of %q, and was of a %s of %q", ErrSubject, certFile, role, cluster, f.role, f.cluster)
	}
	return h, nil
}

func newPool(authorities []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a)
	}
	return pool
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:8])
}

const (
	// Soon is how long before a certificate's end its owner begins to warn.
	Soon = 14 * 24 * time.Hour
	// checkInterval is how often the files are checked while no connection is made.
	checkInterval = 10 * time.Second
	warnInterval  = 24 * time.Hour
)

// Watch logs, until ctx ends, that the certificate is renewed, ends soon, has ended, or has invalid files.
func (i Identity) Watch(ctx context.Context, log *slog.Logger) {
	w := watch{log: log.With("certificate", i.files.paths[0])}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		h, _, err := i.files.current()
		w.report(time.Now(), h.cert.Leaf.NotAfter, err)
		w.reportAuthorities(h.prints)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watch) reportAuthorities(prints []string) {
	if w.prints != nil && !slices.Equal(w.prints, prints) {
		w.log.Info("other authorities are trusted from now on", "authorities", prints)
	}
	w.prints = prints
}

type watch struct {
	log     *slog.Logger
	expires time.Time
	warning string    // as of the last report, "" for none
	warned  time.Time // when warning was logged
	problem string
	prints  []string
}

func (w *watch) report(now, expires time.Time, err error) {
	if !w.expires.IsZero() && !expires.Equal(w.expires) {
		w.log.Info("the certificate was renewed", "until", expires)
	}
	w.expires = expires
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != w.problem && problem != "" {
		w.log.Error("the files hold no certificate to use: the one before stays", "error", err)
	}
	w.problem = problem
	left := expires.Sub(now.Round(0)) // by the wall clock, as TLS takes it
	log, warning := w.log.Warn, ""
	switch {
	case left < 0:
		log, warning = w.log.Error, "the certificate has expired: connections are refused until it is renewed, or the clock is set right"
	case left < Soon:
		warning = "the certificate ends soon: renew it"
	}
	if warning != "" && (warning != w.warning || now.Sub(w.warned) >= warnInterval) {
		log(warning, "until", expires, "days", int(left.Hours()/24))
		w.warned = now
	}
	w.warning = warning
}
