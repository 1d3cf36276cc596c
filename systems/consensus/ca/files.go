package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

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

func readPair(certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := readCertificate(certFile)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPrivate(keyFile); err != nil {
		return nil, nil, err
	}
	der, err := readPEM(keyFile, "PRIVATE KEY")
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key %s: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("the key %s is not that of %s", keyFile, certFile)
	}
	return cert, key, nil
}

func readCertificates(path string) (all []*x509.Certificate, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
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

func readPEM(path, kind string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s in PEM", path, strings.ToLower(kind))
	}
	return block.Bytes, nil
}

func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return advice.With(fmt.Errorf("%w: %s has mode %04o", ErrExposed, path, info.Mode().Perm()), "chmod 600 %s", path)
	}
	return nil
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
		c := Certificate{Name: strings.TrimSuffix(filepath.Base(f), ".crt"), Expires: cert.NotAfter, File: f, Hosts: cert.DNSNames}
		for _, ip := range cert.IPAddresses {
			c.Hosts = append(c.Hosts, ip.String())
		}
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
