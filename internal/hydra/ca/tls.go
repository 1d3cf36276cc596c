package ca

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"skerry/internal/advice"
)

// Identity is a certificate with its key and the authority that it trusts. Its files may be
// replaced while it is in use: connections show the certificate that is in them when they are
// made. The authority's is read once.
type Identity struct {
	Name      string
	Cluster   string
	Role      Role
	pair      *pair
	authority *x509.CertPool
}

// Load reads an identity. A certificate that is not good at that moment is ErrExpired, a
// key that others can read ErrExposed.
func Load(certFile, keyFile, authorityFile string, now time.Time) (Identity, error) {
	authority, err := readCertificate(authorityFile)
	if err != nil {
		return Identity{}, fmt.Errorf("loading an identity's authority: %w", err)
	}
	p := &pair{certFile: certFile, keyFile: keyFile, authority: authority}
	pair, _, err := p.current()
	if err != nil {
		return Identity{}, err
	}
	cert := pair.Leaf
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return Identity{}, advice.With(fmt.Errorf("%w: %s is good from %s to %s", ErrExpired, certFile, cert.NotBefore.Format(time.DateTime), cert.NotAfter.Format(time.DateTime)),
			"renew it with `skerry hydra init DIR --renew %s`, and look at the clock", cert.Subject.CommonName)
	}
	i := Identity{Name: cert.Subject.CommonName, pair: p, authority: x509.NewCertPool()}
	i.Cluster, i.Role = identity(cert)
	p.cluster, p.role = i.Cluster, i.Role
	i.authority.AddCert(authority)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: i.authority, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return i, fmt.Errorf("%s is not signed by %s: %w", certFile, authorityFile, err)
	}
	return i, nil
}

// Refresh looks whether the files have changed, as each new connection does, and tells until
// when the certificate is good. Files that are no good are an error: what was there before
// stays in use.
func (i Identity) Refresh() (expires time.Time, changed bool, err error) {
	cert, changed, err := i.pair.current()
	return cert.Leaf.NotAfter, changed, err
}

// Expires is until when the certificate is good.
func (i Identity) Expires() time.Time {
	expires, _, _ := i.Refresh() // whoever keeps the files is told by Refresh
	return expires
}

func (i Identity) shown(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, _, _ := i.pair.current() // the one before, where the files are no good
	return cert, nil
}

// Server is the configuration of a listener that talks to peers of the same cluster alone,
// which have one of the roles. The clock says which certificates are good; nil is the
// machine's.
func (i Identity) Server(clock func() time.Time, roles ...Role) *tls.Config {
	c := i.Client(clock, roles...)
	c.GetCertificate = i.shown
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, i.authority
	return c
}

// Client is the configuration of connections to peers of the same cluster that have one
// of the roles.
func (i Identity) Client(clock func() time.Time, roles ...Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Time: clock, RootCAs: i.authority, VerifyConnection: i.verify(roles),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.shown(nil) },
	}
}

// Front is the configuration of a listener for the public: browsers, which have no
// certificate.
func (i Identity) Front(clock func() time.Time) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: i.shown, Time: clock}
}

// verify is called when the chain is verified already.
func (i Identity) verify(roles []Role) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return fmt.Errorf("%w: there is none", ErrPeer)
		}
		cert := s.PeerCertificates[0]
		cluster, role := identity(cert)
		if cluster != i.Cluster {
			return fmt.Errorf("%w: %s is of the cluster %q, not %q", ErrPeer, cert.Subject.CommonName, cluster, i.Cluster)
		}
		if !slices.Contains(roles, role) {
			return fmt.Errorf("%w: %s is %q, not one of %q", ErrPeer, cert.Subject.CommonName, role, roles)
		}
		return nil
	}
}
