package ca

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"skerry/internal/advice"
)

// Identity is a certificate with its key and the authority that it trusts.
type Identity struct {
	Name      string
	Cluster   string
	Role      Role
	Expires   time.Time
	pair      tls.Certificate
	authority *x509.CertPool
}

// Load reads an identity. A certificate that is not good at that moment is ErrExpired, a
// key that others can read ErrExposed.
func Load(certFile, keyFile, authorityFile string, now time.Time) (Identity, error) {
	cert, key, err := read(certFile, keyFile)
	if err != nil {
		return Identity{}, fmt.Errorf("loading an identity: %w", err)
	}
	authority, err := readCertificate(authorityFile)
	if err != nil {
		return Identity{}, fmt.Errorf("loading an identity's authority: %w", err)
	}
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return Identity{}, advice.With(fmt.Errorf("%w: %s is good from %s to %s", ErrExpired, certFile, cert.NotBefore.Format(time.DateTime), cert.NotAfter.Format(time.DateTime)),
			"issue another one with `skerry hydra init DIR --add`, and look at the clock")
	}
	i := Identity{Name: cert.Subject.CommonName, Expires: cert.NotAfter, authority: x509.NewCertPool()}
	i.Cluster, i.Role = identity(cert)
	i.authority.AddCert(authority)
	i.pair = tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: i.authority, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return i, fmt.Errorf("%s is not signed by %s: %w", certFile, authorityFile, err)
	}
	return i, nil
}

// Server is the configuration of a listener that talks to peers of the same cluster alone,
// which have one of the roles. The clock says which certificates are good; nil is the
// machine's.
func (i Identity) Server(clock func() time.Time, roles ...Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.pair}, Time: clock,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: i.authority,
		VerifyConnection: i.verify(roles),
	}
}

// Client is the configuration of connections to peers of the same cluster that have one
// of the roles.
func (i Identity) Client(clock func() time.Time, roles ...Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.pair}, Time: clock,
		RootCAs: i.authority, VerifyConnection: i.verify(roles),
	}
}

// Front is the configuration of a listener for the public: browsers, which have no
// certificate.
func (i Identity) Front(clock func() time.Time) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{i.pair}, Time: clock}
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
