package hydra

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skerry/systems/consensus/ca"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/testkit"
)

// keys is a certificate authority and the directory with its files.
type keys struct {
	t         *testing.T
	dir       string
	born      time.Time
	authority *ca.Authority
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{t: t, dir: filepath.Join(t.TempDir(), "pki"), born: time.Now()}
	var err error
	if k.authority, err = ca.Init(k.dir, "test", 365, k.born); err != nil {
		t.Fatal(err)
	}
	k.issue("app", ca.Application)
	return k
}

func (k *keys) file(name string) string { return filepath.Join(k.dir, name) }

func (k *keys) issue(name string, role ca.Role, hosts ...string) {
	k.t.Helper()
	if err := k.authority.Issue(ca.Subject{Name: name, Role: role, Hosts: hosts}, 30, k.born); err != nil {
		k.t.Fatal(err)
	}
}

// member issues the certificate of a member.
func (k *keys) member(c Config) {
	k.t.Helper()
	listen, _, err := net.SplitHostPort(c.Listen)
	peer, _, err2 := net.SplitHostPort(c.Peer)
	if err := errors.Join(err, err2); err != nil {
		k.t.Fatal(err)
	}
	k.issue(c.Name, ca.Member, listen, peer)
}

// copyFiles gives a member its own copies of its certificate files.
func (k *keys) copyFiles(p *process) {
	k.t.Helper()
	in := func(suffix string) string { return filepath.Join(filepath.Dir(p.config.Data), suffix) }
	p.config.Certificate, p.config.Key, p.config.Authority = in("own.crt"), in("own.key"), in("ca.crt")
}

// install replaces a member's certificate and key with those of this authority.
func (k *keys) install(p *process) {
	k.t.Helper()
	replaced(k.t, p.config.Certificate, 0o644, k.file(p.config.Name+".crt"))
	replaced(k.t, p.config.Key, 0o600, k.file(p.config.Name+".key"))
}

// trusts replaces the authorities that a member trusts.
func trusts(p *process, authorities ...*keys) {
	p.t.Helper()
	var files []string
	for _, k := range authorities {
		files = append(files, k.file("ca.crt"))
	}
	replaced(p.t, p.config.Authority, 0o644, files...)
}

// replaced atomically replaces a file with the concatenated contents of others.
func replaced(t *testing.T, path string, mode os.FileMode, from ...string) {
	t.Helper()
	var all [][]byte
	for _, f := range from {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := errors.Join(os.WriteFile(path+".new", bytes.Join(all, nil), mode), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// app returns an application's client of a member with its own connections.
func (k *keys) app(at string, after time.Duration) *hydraclient.Client {
	k.t.Helper()
	id, err := ca.Load(k.file("app.crt"), k.file("app.key"), k.file("ca.crt"), k.born.Add(after))
	if err != nil {
		k.t.Fatal(err)
	}
	clock := func() time.Time { return time.Now().Add(after) }
	c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{at}, TLS: id.Client(clock, ca.Member), Timeout: patience})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			k.t.Error(err)
		}
	})
	return c
}

// TestAnotherAuthority moves a running cluster to another authority without a restart. While both are trusted, a
// member with a certificate of the new one can join; at the end, certificates of the old one are refused.
func TestAnotherAuthority(t *testing.T) {
	ctx := t.Context()
	before, after := newKeys(t), newKeys(t)
	all := planProcesses(t)
	for _, p := range all {
		before.member(p.config)
		before.copyFiles(p)
		before.install(p)
		trusts(p, before)
		p.start()
	}
	at := all[0].config.Listen
	eventually(t, "the table is created", func() bool {
		return before.app(at, 0).CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)) == nil
	})

	// Both are trusted.
	for _, p := range all {
		trusts(p, before, after)
		after.member(p.config)
	}
	late := joining(t, all)
	after.member(late.config)
	after.copyFiles(late)
	after.install(late)
	trusts(late, before, after)
	c := late.config
	late.start()
	eventually(t, "the new member is added", func() bool {
		_, err := before.app(at, 0).AddMember(ctx, api.Member{ID: c.ID, Name: c.Name, Cloud: c.Cloud, Peer: c.Peer, API: c.Listen})
		return err == nil
	})
	eventually(t, "the new member has caught up", func() bool {
		_, err := after.app(c.Listen, 0).Put(ctx, "t", "k", map[string]int{"n": 1}, hydraclient.Ack(api.Everywhere))
		return err == nil
	})

	// All members switch to certificates of the new authority and then trust only it.
	for _, p := range all {
		after.install(p)
	}
	for _, p := range append(all, late) {
		trusts(p, after)
	}
	eventually(t, "certificates of the old authority are refused", func() bool {
		_, err := before.app(at, 0).Status(ctx)
		return errors.Is(err, hydraclient.ErrUnavailable)
	})
	late.kill()
	late.start() // all of its connections are new
	eventually(t, "the members accept writes", func() bool {
		_, err := after.app(c.Listen, 0).Put(ctx, "t", "k", map[string]int{"n": 2}, hydraclient.Ack(api.Everywhere))
		return err == nil
	})
	if s, err := after.app(at, 0).Status(ctx); err != nil || len(s.Certificate.Authorities) != 1 {
		t.Errorf("status %+v, %v", s.Certificate, err)
	}
}

// joining returns a further member in a new cloud.
func joining(t *testing.T, all []*process) *process {
	t.Helper()
	c := Defaults()
	c.Cluster, c.Name, c.Cloud, c.ID, c.Join = "test", "late", "south", 9, true
	c.Listen, c.Peer, c.Data, c.Drain = testkit.Address(t), testkit.Address(t), filepath.Join(t.TempDir(), "data"), 0
	c.Members = append(all[0].config.Members[:len(all):len(all)],
		MemberConfig{ID: c.ID, Name: c.Name, Cloud: c.Cloud, Peer: c.Peer, API: c.Listen})
	p := &process{t: t, config: c}
	t.Cleanup(p.kill)
	return p
}
