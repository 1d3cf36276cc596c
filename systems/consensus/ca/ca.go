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
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
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
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
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
	key     crypto.PrivateKey
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
	pair, err := loadPair(filepath.Join(dir, caName+".crt"), filepath.Join(dir, caName+".key"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, advice.With(err, "make an authority there with `hydra init %s`", dir)
	}
	if err != nil {
		return nil, err
	}
	cluster, _ := subjectOf(pair.Leaf)
	if !pair.Leaf.IsCA || cluster == "" {
		return nil, fmt.Errorf("%s holds no authority of a cluster", dir)
	}
	return &Authority{dir, cluster, pair.Leaf, pair.PrivateKey}, nil
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
	der, err := a.sign(Subject{name, role, hostsOf(old)}, old.PublicKey, days, now)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: der}) })
}

// writePair writes a certificate and its key into new files, the key first, so that no certificate lacks its key.
func writePair(dir, name string, der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	for _, f := range []struct {
		suffix, kind string
		data         []byte
		mode         os.FileMode
	}{{".key", "PRIVATE KEY", secret, 0o600}, {".crt", "CERTIFICATE", der, 0o644}} {
		path := filepath.Join(dir, name+f.suffix)
		if err := Create(path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.data}), f.mode); err != nil {
			return err
		}
	}
	return nil
}

// Create writes a new file durably. It returns ErrExists if the file exists.
func Create(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return advice.With(fmt.Errorf("%s %w", path, ErrExists), "nothing was overwritten; remove it yourself, or choose another name")
	}
	if err != nil {
		return fmt.Errorf("creating a file: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// loadPair reads a certificate and its key. It returns ErrExposed for a key that others can read.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	info, err := os.Stat(keyFile)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = advice.With(fmt.Errorf("%w: %s has mode %04o", ErrExposed, keyFile, info.Mode().Perm()), "chmod 600 %s", keyFile)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return pair, fmt.Errorf("reading %s and its key: %w", certFile, err)
	}
	return pair, nil
}

func readCertificates(path string) (all []*x509.Certificate, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s holds %s beside certificates", path, strings.ToLower(block.Type))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate %s: %w", path, err)
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return all, nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	all, err := readCertificates(path)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Certificate describes a certificate in an authority's directory.
type Certificate struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role,omitempty"` // "" of the authority itself
	Cluster string    `json:"cluster"`
	Hosts   []string  `json:"hosts,omitempty"`
	Expires time.Time `json:"expires"`
	File    string    `json:"file"`
}

// List describes the certificates of an authority's directory by name.
func List(dir string) ([]Certificate, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.crt"))
	if err != nil {
		return nil, err
	}
	var all []Certificate
	for _, f := range files {
		cert, err := readCertificate(f)
		if err != nil {
			return nil, err
		}
		c := Certificate{Name: strings.TrimSuffix(filepath.Base(f), ".crt"), Expires: cert.NotAfter, File: f, Hosts: hostsOf(cert)}
		c.Cluster, c.Role = subjectOf(cert)
		all = append(all, c)
	}
	return all, nil
}

func subjectOf(cert *x509.Certificate) (cluster string, role Role) {
	if o := cert.Subject.Organization; len(o) == 1 {
		cluster = o[0]
	}
	if u := cert.Subject.OrganizationalUnit; len(u) == 1 {
		role = Role(u[0])
	}
	return cluster, role
}

// hostsOf returns the names and addresses that a certificate is for.
func hostsOf(cert *x509.Certificate) []string {
	hosts := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// Files of tokens: members read TokensFile, which has all tokens. The others hold the token that an application sends.
const (
	TokensFile  = "tokens"
	tokenPrefix = "token-"
)

// WriteTokens creates 256-bit tokens for reading, writing and administration, in files that only their owner can read.
func WriteTokens(dir string) error {
	all := ""
	for _, scope := range []string{"read", "write", "admin"} {
		var secret [32]byte
		rand.Read(secret[:]) // never fails
		line := fmt.Sprintf("%s %s\n", scope, hex.EncodeToString(secret[:]))
		if err := Create(filepath.Join(dir, tokenPrefix+scope), []byte(line), 0o600); err != nil {
			return err
		}
		all += line
	}
	return Create(filepath.Join(dir, TokensFile), []byte(all), 0o600)
}
