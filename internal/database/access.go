package database

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/strict"
)

// Access is how clients log in to the servers of a cluster that Skerry did not start, and verify them. It names the
// variables and files of secrets. A client reads them when it connects.
//
// Invariant: a secret is only in the memory of processes that connect, as a Secret or in the client's own state. Access,
// properties of clients, records and files of Skerry contain the names. A driver in a process of its own inherits the
// variables (AccessVariables).
type Access struct {
	// User logs in to the servers. The default depends on the database.
	User string `yaml:"user" json:"user,omitempty"`
	// Password is the variable or file with the password of the user.
	Password PasswordSpec `yaml:"password" json:"password,omitzero"`
	// TLS encrypts the connections and verifies the servers.
	TLS TLSSpec `yaml:"tls" json:"tls,omitzero"`
}

// PasswordSpec names the environment variable or the file with a password.
type PasswordSpec struct {
	// Env is an environment variable.
	Env string `yaml:"env" json:"env,omitempty"`
	// File is the path of a file, relative to the file that names it. Trailing newlines are removed.
	File string `yaml:"file" json:"file,omitempty"`
}

// TLSSpec describes encrypted connections. Files are in PEM, with paths relative to the file that names them.
type TLSSpec struct {
	// Enabled turns TLS on, as any other key does.
	Enabled bool `yaml:"enabled" json:"enabled,omitempty"`
	// CA is a file with the certificates of trusted authorities. The default is the system's authorities.
	CA string `yaml:"ca" json:"ca,omitempty"`
	// Certificate is a file with the certificate of the clients.
	Certificate string `yaml:"certificate" json:"certificate,omitempty"`
	// Key is the file with the certificate's private key.
	Key string `yaml:"key" json:"key,omitempty"`
	// ServerName is the name in the servers' certificates. The default is the host of each server's address.
	ServerName string `yaml:"server_name" json:"server_name,omitempty"`
}

// Shorthand lets "tls: true" stand for "tls: {enabled: true}".
func (TLSSpec) Shorthand() string { return "enabled" }

var _ strict.Decoder = (*PasswordSpec)(nil)

// DecodeNode implements strict.Decoder. Its problem does not quote the document, which may contain a password.
func (p *PasswordSpec) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	type plain PasswordSpec // without this method
	if len(strict.Decode(n, (*plain)(p), path)) > 0 || (p.Env == "") == (p.File == "") {
		report(strict.Problem{Pos: n.Pos.WithoutText(), Path: path, Message: path + ": want the variable or the file with the password",
			Hint: "write {env: VARIABLE}, or {file: PATH}"})
	}
}

// PropAccess is the clients' property for an Access, in JSON.
const PropAccess = "access"

// Property returns the value of PropAccess for files relative to dir, "" for no settings.
func (a Access) Property(dir string) string {
	if a == (Access{}) {
		return ""
	}
	for _, file := range []*string{&a.Password.File, &a.TLS.CA, &a.TLS.Certificate, &a.TLS.Key} {
		if *file == "" || filepath.IsAbs(*file) {
			continue
		}
		*file = filepath.Join(dir, *file)
		if path, err := filepath.Abs(*file); err == nil { // clients and later runs have other working directories
			*file = path
		}
	}
	text, err := json.Marshal(a)
	if err != nil { // plain data
		return ""
	}
	return string(text)
}

// String describes the access for people: "user skerry, password from $REDIS_PASSWORD, TLS with ca.pem".
func (a Access) String() string {
	var parts []string
	if a.User != "" {
		parts = append(parts, "user "+a.User)
	}
	if a.Password != (PasswordSpec{}) {
		parts = append(parts, a.Password.String())
	}
	if t := a.TLS; t != (TLSSpec{}) {
		parts = append(parts, "TLS with "+cmp.Or(t.CA, "the system's authorities"))
		if t.Certificate != "" {
			parts = append(parts, "client certificate "+t.Certificate)
		}
		if t.ServerName != "" {
			parts = append(parts, "server name "+t.ServerName)
		}
	}
	return strings.Join(parts, ", ")
}

// Secret describes the first secret of this machine that the access uses, "" for none.
func (a Access) Secret() string {
	if a.Password == (PasswordSpec{}) && a.TLS.Key != "" {
		return "key from " + a.TLS.Key
	}
	return a.Password.String()
}

func (p PasswordSpec) String() string {
	switch {
	case p.Env != "":
		return "password from $" + p.Env
	case p.File != "":
		return "password from " + p.File
	}
	return ""
}

func (p PasswordSpec) read() (Secret, error) {
	if p.Env != "" {
		value, ok := os.LookupEnv(p.Env)
		switch {
		case !ok:
			return Secret{}, fmt.Errorf("variable %s is not set", p.Env)
		case value == "":
			return Secret{}, fmt.Errorf("variable %s is empty", p.Env)
		}
		return Secret{value}, nil
	}
	data, err := os.ReadFile(p.File)
	if err != nil {
		return Secret{}, fmt.Errorf("read password: %w", err)
	}
	value := strings.TrimRight(string(data), "\r\n")
	if value == "" {
		return Secret{}, fmt.Errorf("file %s is empty", p.File)
	}
	return Secret{value}, nil
}

// config returns the configuration of connections. With an error, key is the key of the mistake.
func (t TLSSpec) config() (config *tls.Config, key string, err error) {
	config = &tls.Config{ServerName: t.ServerName}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, "ca", fmt.Errorf("read authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, "ca", fmt.Errorf("%s contains no certificate in PEM", t.CA)
		}
	}
	switch {
	case t.Certificate == "" && t.Key == "":
		return config, "", nil
	case t.Certificate == "":
		return nil, "key", errors.New("a key needs its certificate")
	case t.Key == "":
		return nil, "certificate", errors.New("a certificate needs its key")
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, "certificate", fmt.Errorf("read %s and %s: %w", t.Certificate, t.Key, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, "", nil
}

// Login is what a client needs to connect. TLS is nil for connections without TLS.
type Login struct {
	User     string
	Password Secret
	TLS      *tls.Config
}

// ReadLogin reads the variables and files of an access property. The user and password, of the client's own properties,
// apply where the access has none.
func ReadLogin(property, user, password string) (Login, error) {
	l, _, err := readLogin(property)
	l.User = cmp.Or(l.User, user)
	l.Password = cmp.Or(l.Password, Secret{password})
	return l, err
}

// CheckAccess reads the variables and files of an access property. With an error, key is the key of the mistake.
func CheckAccess(property string) (key string, err error) {
	_, key, err = readLogin(property)
	return key, err
}

func readLogin(property string) (l Login, key string, err error) {
	if property == "" {
		return l, "", nil
	}
	var a Access
	if err := json.Unmarshal([]byte(property), &a); err != nil {
		return l, "", fmt.Errorf("property %s: %w", PropAccess, err)
	}
	l.User = a.User
	if a.Password != (PasswordSpec{}) {
		if l.Password, err = a.Password.read(); err != nil {
			return l, "password", err
		}
	}
	if a.TLS != (TLSSpec{}) {
		if l.TLS, key, err = a.TLS.config(); err != nil {
			return l, strict.Join("tls", key), err
		}
	}
	return l, "", nil
}

// TLSTo returns the configuration of a connection to addr (host:port), nil without TLS.
func (l Login) TLSTo(addr string) *tls.Config {
	if l.TLS == nil || l.TLS.ServerName != "" {
		return l.TLS
	}
	config := l.TLS.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr)
	return config
}

// AccessVariables returns the environment variables, NAME=VALUE, that clients with these properties read in another process.
func AccessVariables(properties map[string]string) (list []string) {
	var a Access
	if json.Unmarshal([]byte(properties[PropAccess]), &a) != nil {
		return nil
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", a.Password.Env} { // the first two are of package x509
		if value, ok := os.LookupEnv(name); ok {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// Secret is a value that only Reveal returns. All other forms of it are "(secret)".
type Secret struct{ value string }

const hidden = "(secret)"

// Reveal returns the secret, for the client that logs in with it.
func (s Secret) Reveal() string { return s.value }

func (Secret) String() string               { return hidden }
func (Secret) Format(w fmt.State, _ rune)   { _, _ = io.WriteString(w, hidden) }
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }
