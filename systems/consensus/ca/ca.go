// Package ca is the certificate authority of one deployment: a directory with the authority's key, a certificate and key
// for every member and application, and the tokens of the API.
//
//	DIR/ca.crt ca.key             the authority
//	DIR/NAME.crt NAME.key         a member or an application
//
// Processes use a renewed certificate from the next connection on, without a restart. The same holds for authorities:
// ca.crt may hold several certificates, whose owners are all trusted.
//
// A certificate states the cluster of its owner (organization) and its role (organizational unit), and peers check both.
// So a member of another cluster is refused even if one authority signs for several clusters, and an application cannot
// act as a member.
package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"skerry/internal/base/atomicfile"
	"slices"
	"time"

	"skerry/internal/base/advice"
)

var (
	// ErrExists reports that the authority or certificate exists.
	ErrExists = errors.New("exists already")
	// ErrSubject reports an invalid subject of a certificate.
	ErrSubject = errors.New("invalid subject of a certificate")
	// ErrExpired reports a certificate that is not valid at the time.
	ErrExpired = errors.New("the certificate has expired")
	// ErrPeer reports a peer's certificate of another cluster or role.
	ErrPeer = errors.New("the peer's certificate is not one for this")
	// ErrExposed reports a key that others can read.
	ErrExposed = errors.New("the key can be read by others")
)

// Role is what the owner of a certificate is in its cluster.
type Role string

const (
	Member      Role = "member"
	Application Role = "application"
)

// Subject is the owner of a certificate.
type Subject struct {
	Name  string
	Role  Role
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
	caName = "ca"
	// skew is by how much the clocks of two clouds may differ at the start of a certificate's life.
	skew = 5 * time.Minute
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Init creates an authority for a cluster in a directory that is empty or missing. It is valid for days from now on.
func Init(dir, cluster string, days int, now time.Time) (*Authority, error) {
	if !validName.MatchString(cluster) {
		return nil, fmt.Errorf("%w: %q cannot be the name of a cluster", ErrSubject, cluster)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, advice.With(fmt.Errorf("%s %w, with %s in it", dir, ErrExists, entries[0].Name()),
			"name another directory, or add a certificate with --add")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the authority's directory: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating the authority's key: %w", err)
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
	if err := writePair(dir, caName, der, key); err != nil {
		return nil, err
	}
	return Open(dir)
}

// Open opens the authority of a directory.
func Open(dir string) (*Authority, error) {
	cert, key, err := readPair(filepath.Join(dir, caName+".crt"), filepath.Join(dir, caName+".key"))
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

// Issue creates a key and a certificate for a subject, valid for days, but not longer than the authority.
func (a *Authority) Issue(s Subject, days int, now time.Time) error {
	if !validName.MatchString(s.Name) || s.Name == caName {
		return fmt.Errorf("%w: %q cannot be a name", ErrSubject, s.Name)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating the key of %s: %w", s.Name, err)
	}
	der, err := a.sign(s, key.Public(), days, now)
	if err != nil {
		return err
	}
	return writePair(a.dir, s.Name, der, key)
}

func (a *Authority) sign(s Subject, key crypto.PublicKey, days int, now time.Time) ([]byte, error) {
	if now.After(a.cert.NotAfter) {
		return nil, advice.With(fmt.Errorf("%w: that of the authority in %s, on %s", ErrExpired, a.dir, a.cert.NotAfter.Format(time.DateOnly)),
			"make a new authority in another directory")
	}
	subject := pkix.Name{CommonName: s.Name, Organization: []string{a.cluster}, OrganizationalUnit: []string{string(s.Role)}}
	t, err := template(subject, days, now)
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
		return nil, fmt.Errorf("creating a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: now.Add(-skew), NotAfter: now.Add(time.Duration(days) * 24 * time.Hour),
	}, nil
}

// Renew replaces a certificate by one for the same key and subject, valid for days from now on. The replacement is atomic.
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
	cluster, role := subjectOf(old)
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
	return atomicfile.Write(path, func(w io.Writer) error { return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: der}) })
}
