package ca

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// authority creates a certificate authority with certificates for members and an application.
func authority(t *testing.T, cluster string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "pki")
	a, err := Init(dir, cluster, 365, created)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Subject{{"aws-1", Member, []string{"127.0.0.1"}}, {"gcp-1", Member, []string{"127.0.0.1", "gcp.example"}}, {"wallet", Application, nil}} {
		if err := a.Issue(s, 30, created); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, dir, name string) Identity {
	t.Helper()
	i, err := Load(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"), filepath.Join(dir, "ca.crt"), created)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// runHandshake runs a TLS handshake between two peers and returns the error of each side.
func runHandshake(t *testing.T, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			s := tls.Server(conn, server)
			if err = s.Handshake(); err == nil {
				_, err = s.Write([]byte("x")) // in TLS 1.3 the client sees a refusal when it reads
			}
		}
		got <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client.ServerName = "127.0.0.1"
	c := tls.Client(conn, client)
	if atClient = c.Handshake(); atClient == nil {
		_, atClient = c.Read(make([]byte, 1))
	} else {
		conn.Close()
	}
	return <-got, atClient
}

func TestPeers(t *testing.T) {
	dir, other := authority(t, "hydra"), authority(t, "hydra")
	at := func(when time.Time) func() time.Time { return func() time.Time { return when } }
	then, late := at(created.Add(time.Hour)), at(created.Add(31*24*time.Hour))
	aws, gcp, wallet, stranger := load(t, dir, "aws-1"), load(t, dir, "gcp-1"), load(t, dir, "wallet"), load(t, other, "gcp-1")
	tests := []struct {
		name           string
		server, client *tls.Config
		ok             bool
		says           string
	}{
		{"members", aws.Server(then, Member), gcp.Client(then, Member)(), true, ""},
		{"an application at the API", aws.Server(then, Member, Application), wallet.Client(then, Member)(), true, ""},
		{"an application among members", aws.Server(then, Member), wallet.Client(then, Member)(), false, "not one for this"},
		{"a member of another authority", aws.Server(then, Member), stranger.Client(then, Member)(), false, "unknown authority"},
		{"a server of another authority", stranger.Server(then, Member), gcp.Client(then, Member)(), false, "unknown authority"},
		{"no certificate", aws.Server(then, Member), &tls.Config{InsecureSkipVerify: true}, false, "certificate"},
		{"an expired client", aws.Server(late, Member), gcp.Client(then, Member)(), false, "expired"},
		{"an expired server", aws.Server(then, Member), gcp.Client(late, Member)(), false, "expired"},
		{"a clock before the certificate", aws.Server(at(created.Add(-time.Hour)), Member), gcp.Client(then, Member)(), false, "not yet valid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			atServer, atClient := runHandshake(t, tt.server, tt.client)
			err := errors.Join(atServer, atClient)
			if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("server: %v\nclient: %v", atServer, atClient)
			}
		})
	}
	t.Run("another cluster of the same authority", func(t *testing.T) {
		elsewhere := gcp
		elsewhere.Cluster = "other"
		_, err := runHandshake(t, aws.Server(then, Member), elsewhere.Client(then, Member)())
		if !errors.Is(err, ErrPeer) {
			t.Errorf("error %v", err)
		}
	})
}

func TestFiles(t *testing.T) {
	dir := authority(t, "hydra")
	for _, key := range []string{"ca.key", "aws-1.key", "wallet.key"} {
		info, err := os.Stat(filepath.Join(dir, key))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info.Mode(), err)
		}
	}
	all, err := List(dir)
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[2]; got.Name != "gcp-1" || got.Role != Member || got.Cluster != "hydra" || !got.Expires.Equal(created.AddDate(0, 0, 30)) ||
		!slices.Equal(got.Hosts, []string{"gcp.example", "gcp-1", "127.0.0.1"}) {
		t.Errorf("%+v", got)
	}
}

func TestRefusals(t *testing.T) {
	dir := authority(t, "hydra")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, "hydra", 30, created); !errors.Is(err, ErrExists) {
		t.Errorf("creating a second authority: %v", err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, "aws-1.key"))
	if err := a.Issue(Subject{"aws-1", Member, nil}, 30, created); !errors.Is(err, ErrExists) {
		t.Errorf("issuing a second certificate for the same name: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "aws-1.key")); string(after) != string(before) {
		t.Error("a private key was overwritten")
	}
	for _, s := range []Subject{{"ca", Member, nil}, {"../x", Member, nil}, {"", Member, nil}} {
		if err := a.Issue(s, 30, created); !errors.Is(err, ErrSubject) {
			t.Errorf("%q: %v", s.Name, err)
		}
	}
	if err := a.Issue(Subject{"late", Member, nil}, 30, created.AddDate(2, 0, 0)); !errors.Is(err, ErrExpired) {
		t.Errorf("issuing after the authority has expired: %v", err)
	}
	if err := a.Issue(Subject{"long", Member, nil}, 9999, created); err != nil {
		t.Error(err)
	}
	if i := load(t, dir, "long"); i.Expires().After(a.Expires()) {
		t.Errorf("the certificate expires at %v, its authority at %v", i.Expires(), a.Expires())
	}
	if _, err := Init(filepath.Join(t.TempDir(), "x"), "a cluster", 30, created); !errors.Is(err, ErrSubject) {
		t.Errorf("invalid cluster name: %v", err)
	}
	if _, err := Init(filepath.Join(t.TempDir(), "x"), "hydra", 0, created); !errors.Is(err, ErrSubject) {
		t.Errorf("validity of 0 days: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir, other := authority(t, "hydra"), authority(t, "hydra")
	file := func(dir, name string) string { return filepath.Join(dir, name) }
	if _, err := Load(file(dir, "aws-1.crt"), file(dir, "aws-1.key"), file(dir, "ca.crt"), created.AddDate(0, 2, 0)); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	if _, err := Load(file(dir, "aws-1.crt"), file(dir, "gcp-1.key"), file(dir, "ca.crt"), created); err == nil {
		t.Error("the key of another certificate was accepted")
	}
	if _, err := Load(file(dir, "aws-1.crt"), file(dir, "aws-1.key"), file(other, "ca.crt"), created); err == nil {
		t.Error("another authority's certificate was accepted")
	}
	if err := os.Chmod(file(dir, "aws-1.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file(dir, "aws-1.crt"), file(dir, "aws-1.key"), file(dir, "ca.crt"), created); !errors.Is(err, ErrExposed) {
		t.Errorf("a world-readable key: %v", err)
	}
	if err := os.WriteFile(file(dir, "gcp-1.crt"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file(dir, "gcp-1.crt"), file(dir, "gcp-1.key"), file(dir, "ca.crt"), created); err == nil {
		t.Error("an invalid file was accepted")
	}
}

// TestRenewed renews certificates while listeners and clients keep using the same configuration.
func TestRenewed(t *testing.T) {
	dir := authority(t, "hydra")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	late := created.Add(31 * 24 * time.Hour)
	clock := func() time.Time { return late }
	aws, gcp := load(t, dir, "aws-1"), load(t, dir, "gcp-1")
	server, client := aws.Server(clock, Member), gcp.Client(clock, Member)
	handshake := func() error { return errors.Join(runHandshake(t, server, client())) }
	if err := handshake(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("handshake with two expired certificates: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "gcp-1.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aws-1", "gcp-1"} {
		if err := a.Renew(name, 30, late); err != nil {
			t.Fatal(err)
		}
	}
	if err := handshake(); err != nil {
		t.Errorf("handshake with two renewed certificates: %v", err)
	}
	if got, want := gcp.Expires(), late.Add(30*24*time.Hour); !got.Equal(want) {
		t.Errorf("the certificate expires at %v, want %v", got, want)
	}
	all, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := all[2]; c.Name != "gcp-1" || c.Role != Member || !slices.Equal(c.Hosts, []string{"gcp.example", "gcp-1", "127.0.0.1"}) {
		t.Errorf("renewed: %+v", c)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "gcp-1.key")); string(after) != string(before) {
		t.Error("the renewal changed the key")
	}

	for _, bad := range []struct {
		name, from string
	}{{"another authority's", filepath.Join(authority(t, "hydra"), "aws-1.crt")}, {"another role's", filepath.Join(dir, "wallet.crt")}, {"nonsense", filepath.Join(dir, "aws-1.key")}} {
		text, err := os.ReadFile(bad.from)
		if err != nil {
			t.Fatal(err)
		}
		good, err := os.ReadFile(filepath.Join(dir, "aws-1.crt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "aws-1.crt"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := aws.Refresh(); err == nil || changed {
			t.Errorf("%s certificate was loaded", bad.name)
		}
		if err := handshake(); err != nil {
			t.Errorf("with %s certificate on disk: %v", bad.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "aws-1.crt"), good, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := aws.Refresh(); err != nil {
			t.Errorf("handshake with the repaired certificate: %v", err)
		}
	}
	if err := a.Renew("nobody", 30, late); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("renewing a missing certificate: %v", err)
	}
	if err := a.Renew("ca", 30, late); !errors.Is(err, ErrSubject) {
		t.Errorf("renewing the authority: %v", err)
	}
}

// TestAnotherAuthority replaces the authority of a running listener and client: they trust both
// authorities for a while, then only the new one.
func TestAnotherAuthority(t *testing.T) {
	before, after, own := authority(t, "hydra"), authority(t, "hydra"), t.TempDir()
	put := func(to string, mode os.FileMode, from ...string) {
		t.Helper()
		var all []byte
		for _, f := range from {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := errors.Join(os.WriteFile(to+".new", all, mode), os.Rename(to+".new", to)); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join
	one, two := at(own, "one.crt"), at(own, "two.crt")
	put(one, 0o644, at(before, "ca.crt"))
	put(two, 0o644, at(after, "ca.crt"))
	put(at(own, "ca.crt"), 0o644, one)
	put(at(own, "aws-1.crt"), 0o644, at(before, "aws-1.crt"))
	put(at(own, "aws-1.key"), 0o600, at(before, "aws-1.key"))
	put(at(before, "ca.crt"), 0o644, one, two) // the other peers always trust both
	put(at(after, "ca.crt"), 0o644, one, two)
	clock := func() time.Time { return created.Add(time.Hour) }
	i, old, young := load(t, own, "aws-1"), load(t, before, "gcp-1"), load(t, after, "gcp-1")
	server, client := i.Server(clock, Member), i.Client(clock, Member)
	for _, step := range []struct {
		name       string
		do         func()
		good       bool // the files
		old, young bool // peers of the old and the new authority are accepted and can be dialled
	}{
		{"one authority", func() {}, true, true, false},
		{"two", func() { put(at(own, "ca.crt"), 0o644, one, two) }, true, true, true},
		{"only the new authority, which has not signed this certificate", func() { put(at(own, "ca.crt"), 0o644, two) }, false, true, true},
		{"a new certificate without its key", func() { put(at(own, "aws-1.crt"), 0o644, at(after, "aws-1.crt")) }, false, true, true},
		{"the key of the new certificate", func() { put(at(own, "aws-1.key"), 0o600, at(after, "aws-1.key")) }, true, false, true},
		{"a member's instead of an authority's", func() { put(at(own, "ca.crt"), 0o644, two, at(before, "gcp-1.crt")) }, false, false, true},
		{"nobody", func() { put(at(own, "ca.crt"), 0o644) }, false, false, true},
	} {
		step.do()
		if _, _, err := i.Refresh(); (err == nil) != step.good {
			t.Errorf("%s: %v", step.name, err)
		}
		for _, other := range []struct {
			Identity
			in bool
		}{{old, step.old}, {young, step.young}} {
			in := errors.Join(runHandshake(t, server, other.Client(clock, Member)()))
			out := errors.Join(runHandshake(t, other.Server(clock, Member), client()))
			if (in == nil) != other.in || (out == nil) != other.in {
				t.Errorf("%s, with %s of %v: incoming %v, outgoing %v", step.name, other.Name, other.Authorities(), in, out)
			}
		}
	}
}

// Expires returns the end of the authority's certificate, which bounds all that it signs.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// Refresh reads changed files, as each new connection does, and returns the end of the certificate. If the files are
// invalid, it returns an error, and the previous contents stay in use.
func (i Identity) Refresh() (expires time.Time, changed bool, err error) {
	held, changed, err := i.files.current()
	return held.cert.Leaf.NotAfter, changed, err
}
