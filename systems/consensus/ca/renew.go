package ca

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
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
	return atomicfile.File(path, func(w io.Writer) error { return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: der}) })
}
