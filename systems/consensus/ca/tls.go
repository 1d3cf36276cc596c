package ca

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"skerry/internal/base/advice"
)

// Identity is a certificate with its key and the authorities that it trusts. Their files may be
// replaced while it is in use: connections show, and are judged by, what is in them when they are
// made.
type Identity struct {
	Name    string
	Cluster string
	Role    Role
	files   *files
}

// Load reads an identity. The authorities' file may hold several, all of which are trusted. A
// certificate that is not good at that moment is ErrExpired, a key that others can read
// ErrExposed.
func Load(certFile, keyFile, authorityFile string, now time.Time) (Identity, error) {
	f := &files{paths: [3]string{certFile, keyFile, authorityFile}}
	held, _, err := f.current()
	if err != nil {
		return Identity{}, err
	}
	cert := held.cert.Leaf
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return Identity{}, advice.With(fmt.Errorf("%w: %s is good from %s to %s", ErrExpired, certFile, cert.NotBefore.Format(time.DateTime), cert.NotAfter.Format(time.DateTime)),
			"renew it with `hydra init DIR --renew %s`, and look at the clock", cert.Subject.CommonName)
	}
	i := Identity{Name: cert.Subject.CommonName, files: f}
	i.Cluster, i.Role = identity(cert)
	f.cluster, f.role = i.Cluster, i.Role
	if _, err := cert.Verify(x509.VerifyOptions{Roots: held.pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return i, fmt.Errorf("%s is not signed by %s: %w", certFile, authorityFile, err)
	}
	return i, nil
}

// Refresh looks whether the files have changed, as each new connection does, and tells until
// when the certificate is good. Files that are no good are an error: what was there before
// stays in use.
func (i Identity) Refresh() (expires time.Time, changed bool, err error) {
	held, changed, err := i.files.current()
	return held.cert.Leaf.NotAfter, changed, err
}

// Authorities are the fingerprints of those that are trusted, in the order of their file.
func (i Identity) Authorities() []string { return i.held().prints }

// Hosts are the names and addresses that the certificate is for.
func (i Identity) Hosts() []string {
	cert := i.held().cert
	hosts := slices.Clone(cert.Leaf.DNSNames)
	for _, a := range cert.Leaf.IPAddresses {
		hosts = append(hosts, a.String())
	}
	return hosts
}

// Expires is until when the certificate is good.
func (i Identity) Expires() time.Time { return i.held().cert.Leaf.NotAfter }

// held is what the files hold, or the last that they held that was good: whoever keeps the files
// is told by Refresh.
func (i Identity) held() *held {
	h, _, _ := i.files.current()
	return h
}

func (i Identity) shown(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.held().cert, nil }

// Server is the configuration of a listener that talks to peers of the same cluster alone,
// which have one of the roles. The clock says which certificates are good; nil is the
// machine's.
func (i Identity) Server(clock func() time.Time, roles ...Role) *tls.Config {
	config := func() *tls.Config {
		c := i.Client(clock, roles...)()
		c.GetCertificate = i.shown
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, c.RootCAs
		// A session that is resumed would not be judged by the authorities of now.
		c.SessionTicketsDisabled = true
		return c
	}
	listener := config()
	listener.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := config()
		c.NextProtos = []string{"h2", "http/1.1"} // as http.Server has them; others are not asked
		return c, nil
	}
	return listener
}

// Client tells the configuration of a connection to peers of the same cluster that have one of
// the roles: it is asked anew for each.
func (i Identity) Client(clock func() time.Time, roles ...Role) func() *tls.Config {
	return func() *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Time: clock, RootCAs: i.held().pool, VerifyConnection: i.verify(roles),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.shown(nil) },
		}
	}
}

// Front is the configuration of a listener for the public: browsers, which have no
// certificate.
func (i Identity) Front(clock func() time.Time) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: i.shown, Time: clock}
}

// Trust is the configuration of a connection to a server of any cluster of the authorities, by its
// address.
func (i Identity) Trust() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.held().pool}
}

// Trust is that of a client that has the authorities' certificates alone.
func Trust(authorityFile string) (func() *tls.Config, error) {
	authorities, err := readCertificates(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("loading the authority's certificate: %w", err)
	}
	pool := poolOf(authorities)
	return func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool} }, nil
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
