package database

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/systems/consensus/ca"
)

// certificates returns a directory with ca.crt, client.crt and client.key.
func certificates(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certificates")
	a, err := ca.Init(dir, "test", 1, time.Now())
	if err == nil {
		err = a.Issue(ca.Subject{Name: "client"}, 1, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSecretIsHidden prints a login in all ways that code might.
func TestSecretIsHidden(t *testing.T) {
	const password = "correct horse"
	l := Login{User: "skerry", Password: Secret{password}}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3v"} {
		fmt.Fprintf(&printed, verb+verb+verb, l, &l, l.Password)
	}
	text, err := json.Marshal(map[string]any{"login": l})
	if err != nil {
		t.Fatal(err)
	}
	printed.Write(text)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("login", "login", l, "password", l.Password)
	}
	printed.Write(log.Bytes())
	for _, form := range []string{password, fmt.Sprintf("%x", password), fmt.Sprintf("%X", password)} {
		if strings.Contains(printed.String(), form) {
			t.Errorf("the password was printed: %s", printed.String())
		}
	}
	if l.Password.Reveal() != password {
		t.Error("Reveal does not return the password")
	}
}

func TestAccess(t *testing.T) {
	dir := certificates(t)
	for name, text := range map[string]string{"password": "of the file\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SKERRY_TEST_PASSWORD", "of the variable")
	t.Setenv("SKERRY_TEST_EMPTY", "")
	t.Setenv("SSL_CERT_FILE", "/etc/authorities.pem")
	t.Setenv("SSL_CERT_DIR", "/etc/authorities")
	env, file := PasswordSpec{Env: "SKERRY_TEST_PASSWORD"}, PasswordSpec{File: "password"}
	for _, tt := range []struct {
		access                   Access
		text, user, password     string
		certificates             int
		key, err                 string
		encrypted, authoritative bool
	}{
		{access: Access{}, user: "default", password: "given"},
		{access: Access{User: "u", Password: env}, text: "user u, password from $SKERRY_TEST_PASSWORD", user: "u", password: "of the variable"},
		{access: Access{Password: file}, text: "password from password", user: "default", password: "of the file"},
		{access: Access{TLS: TLSSpec{Enabled: true}}, text: "TLS with the system's authorities", user: "default", password: "given", encrypted: true},
		{access: Access{TLS: TLSSpec{CA: "ca.crt", Certificate: "client.crt", Key: "client.key", ServerName: "n"}},
			text: "TLS with ca.crt, client certificate client.crt, server name n", user: "default", password: "given",
			encrypted: true, authoritative: true, certificates: 1},
		{access: Access{Password: PasswordSpec{Env: "SKERRY_TEST_MISSING"}}, key: "password", err: "variable SKERRY_TEST_MISSING is not set"},
		{access: Access{Password: PasswordSpec{Env: "SKERRY_TEST_EMPTY"}}, key: "password", err: "variable SKERRY_TEST_EMPTY is empty"},
		{access: Access{Password: PasswordSpec{File: "missing"}}, key: "password", err: filepath.Join(dir, "missing")},
		{access: Access{Password: PasswordSpec{File: "empty"}}, key: "password", err: "empty is empty"},
		{access: Access{TLS: TLSSpec{Enabled: true, CA: "missing"}}, key: "tls.ca", err: filepath.Join(dir, "missing")},
		{access: Access{TLS: TLSSpec{Enabled: true, CA: "client.key"}}, key: "tls.ca", err: "client.key contains no certificate"},
		{access: Access{TLS: TLSSpec{Enabled: true, Key: "client.key"}}, key: "tls.key", err: "a key needs its certificate"},
		{access: Access{TLS: TLSSpec{Enabled: true, Certificate: "client.crt"}}, key: "tls.certificate", err: "a certificate needs its key"},
		{access: Access{TLS: TLSSpec{Enabled: true, Certificate: "client.crt", Key: "ca.key"}}, key: "tls.certificate", err: "client.crt and "},
	} {
		property := tt.access.Property(dir)
		key, err := CheckAccess(property)
		if tt.err != "" {
			if key != tt.key || err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %s: %v, want %s: %s", property, key, err, tt.key, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", property, key, err)
		}
		if got := tt.access.String(); tt.text != "" && got != tt.text {
			t.Errorf("%s, want %s", got, tt.text)
		}
		l, err := ReadLogin(property, "default", "given")
		if err != nil || l.User != tt.user || l.Password.Reveal() != tt.password || (l.TLS != nil) != tt.encrypted {
			t.Errorf("%s: user %s, password %s, TLS %v: %v", property, l.User, l.Password.Reveal(), l.TLS, err)
		}
		if l.TLS != nil && ((l.TLS.RootCAs != nil) != tt.authoritative || len(l.TLS.Certificates) != tt.certificates) {
			t.Errorf("%s: authorities %v, %d certificates", property, l.TLS.RootCAs, len(l.TLS.Certificates))
		}
	}
	variables := AccessVariables(map[string]string{PropAccess: Access{Password: env}.Property(dir)})
	if want := []string{"SSL_CERT_FILE=/etc/authorities.pem", "SSL_CERT_DIR=/etc/authorities", "SKERRY_TEST_PASSWORD=of the variable"}; !slices.Equal(variables, want) {
		t.Errorf("variables %v, want %v", variables, want)
	}
	if variables := AccessVariables(map[string]string{}); variables != nil {
		t.Errorf("variables %v for clients without a login", variables)
	}
}

func TestTLSTo(t *testing.T) {
	for _, tt := range []struct{ name, addr, want string }{
		{"", "10.0.0.1:6379", "10.0.0.1"}, {"", "[fd00::1]:6379", "fd00::1"}, {"redis.example", "10.0.0.1:6379", "redis.example"},
	} {
		l, err := ReadLogin(Access{TLS: TLSSpec{Enabled: true, ServerName: tt.name}}.Property("/"), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.TLSTo(tt.addr).ServerName; got != tt.want {
			t.Errorf("%s: server name %s, want %s", tt.addr, got, tt.want)
		}
	}
	if (Login{}).TLSTo("a:1") != nil {
		t.Error("a login without TLS has a TLS configuration")
	}
}
