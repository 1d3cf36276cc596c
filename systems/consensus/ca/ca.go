// Package ca is the certificate authority of one Hydra deployment, as small as mutual TLS
// between its processes allows: a directory with the authority's key, a certificate and
// key for every member and every application, and the tokens of the API.
//
//	DIR/ca.crt ca.key             the authority
//	DIR/NAME.crt NAME.key         a member or an application
//
// A certificate that is renewed is taken up with the next connection, without a restart. So are
// authorities: ca.crt may hold several certificates, whose owners are all trusted.
//
// A certificate says of which cluster its owner is (the organization) and what it is there
// (the organizational unit), and a peer believes both: a member of another cluster is
// refused even where one authority signs for several clusters, and an application cannot
// pass for a member.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"skerry/internal/base/advice"
)

// Sentinel errors.
var (
	// ErrExists says that there is an authority, or a certificate, already.
	ErrExists = errors.New("exists already")
	// ErrSubject says that a certificate cannot be made out to someone.
	ErrSubject = errors.New("invalid subject of a certificate")
	// ErrExpired says that a certificate is not good any more.
	ErrExpired = errors.New("the certificate has expired")
	// ErrPeer says that a peer's certificate is of another cluster or for something else.
	ErrPeer = errors.New("the peer's certificate is not one for this")
	// ErrExposed says that others can read a key.
	ErrExposed = errors.New("the key can be read by others")
)

// Role is what the owner of a certificate is in its cluster.
type Role string

// Roles.
const (
	Member      Role = "member"
	Application Role = "application"
)

// Subject is someone to make a certificate out to.
type Subject struct {
	Name string
	Role Role
	// Hosts are the names and addresses that it is reached by.
	Hosts []string
}

// Authority signs certificates of one cluster.
type Authority struct {
	dir     string
	cluster string
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
}

const (
	// caName is the authority's name in its directory, which no subject may have.
	caName = "ca"
	// skew is by how much the clocks of two clouds may differ at the start of a
	// certificate's life.
	skew = 5 * time.Minute
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Init makes an authority for a cluster in a directory that is empty or is not there. It
// is good for so many days from now on.
func Init(dir, cluster string, days int, now time.Time) (*Authority, error) {
	if !validName.MatchString(cluster) {
		return nil, fmt.Errorf("%w: %q cannot be the name of a cluster", ErrSubject, cluster)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, advice.With(fmt.Errorf("%s %w, with %s in it", dir, ErrExists, entries[0].Name()),
			"name another directory, or add a certificate with --add")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the authority's directory: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	template, err := template(pkix.Name{CommonName: "Hydra authority of " + cluster, Organization: []string{cluster}}, days, now)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the authority's certificate: %w", err)
	}
	if err := write(dir, caName, der, key); err != nil {
		return nil, err
	}
	return Open(dir)
}

// Open opens the authority of a directory.
func Open(dir string) (*Authority, error) {
	cert, key, err := read(filepath.Join(dir, caName+".crt"), filepath.Join(dir, caName+".key"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, advice.With(err, "make an authority there with `hydra init %s`", dir)
	}
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, cert: cert, key: key}
	if !cert.IsCA || len(cert.Subject.Organization) != 1 {
		return nil, fmt.Errorf("%s holds no authority of a cluster", dir)
	}
	a.cluster = cert.Subject.Organization[0]
	return a, nil
}

// Expires is when the authority's own certificate ends, and all that it signed with it.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Issue makes a key and a certificate for a subject, good for so many days but not longer
// than the authority's own.
func (a *Authority) Issue(s Subject, days int, now time.Time) error {
	if !validName.MatchString(s.Name) || s.Name == caName {
		return fmt.Errorf("%w: %q cannot be a name", ErrSubject, s.Name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", s.Name, err)
	}
	der, err := a.sign(s, key.Public(), days, now)
	if err != nil {
		return err
	}
	return write(a.dir, s.Name, der, key)
}

// sign makes a certificate for a key, which ends with the authority's own at the latest.
func (a *Authority) sign(s Subject, key crypto.PublicKey, days int, now time.Time) ([]byte, error) {
	if now.After(a.cert.NotAfter) {
		return nil, advice.With(fmt.Errorf("%w: that of the authority in %s, on %s", ErrExpired, a.dir, a.cert.NotAfter.Format(time.DateOnly)), "make a new authority in another directory")
	}
	t, err := template(pkix.Name{CommonName: s.Name, Organization: []string{a.cluster}, OrganizationalUnit: []string{string(s.Role)}}, days, now)
	if err != nil {
		return nil, err
	}
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, h := range append(slices.Clone(s.Hosts), s.Name) {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else if h != "" && !slices.Contains(t.DNSNames, h) {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", s.Name, err)
	}
	return der, nil
}

func template(subject pkix.Name, days int, now time.Time) (*x509.Certificate, error) {
	if days < 1 {
		return nil, fmt.Errorf("%w: good for %d days", ErrSubject, days)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-skew), NotAfter: now.Add(time.Duration(days) * 24 * time.Hour),
	}, nil
}
