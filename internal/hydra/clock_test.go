package hydra

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/hydra/api"
	"skerry/internal/hydra/ca"
	"skerry/internal/hydra/client"
	"skerry/internal/hydra/command"
	"skerry/internal/testkit/wallclock"
	"skerry/internal/unit"
)

// TestClockJumps sets the wall clocks of running members forward and back by hours.
func TestClockJumps(t *testing.T) {
	ctx := t.Context()
	all := planProcesses(t)
	east, west, witness := all[0], all[1], all[2]
	var clocks []*wallclock.Clock
	for _, p := range all {
		p.config.Timeout = unit.Duration(1500 * time.Millisecond)
		p.start()
		clocks = append(clocks, wallclock.Of(t, p.cmd.Process.Pid))
	}
	eventually(t, "there is a table", func() bool { return east.client.CreateTable(ctx, "t", client.Ack(api.Everywhere)) == nil })
	once := api.Transaction{RequestID: "once", Writes: []api.Write{{Do: command.Add, Table: "t", Key: "k", Value: []byte(`{"n":1}`)}}}
	check := func(p *process) {
		t.Helper()
		eventually(t, "the order of before is not done twice", func() bool {
			_, err := p.client.Transact(ctx, once)
			return err == nil
		})
		for what, o := range map[string]client.Option{"local": client.Read(api.Local), "bounded": client.Staleness(10 * time.Second), "linearizable": client.Read(api.Linearizable)} {
			var meta client.Meta
			eventually(t, what+" read tells a sane age", func() bool {
				row, err := p.client.Get(ctx, "t", "k", o, client.WithMeta(&meta))
				return err == nil && string(row.Value) == `{"n":1}` && meta.Staleness >= 0 && meta.Staleness < time.Hour
			})
		}
	}
	check(east)
	for i := range all {
		for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
			clocks[i].Set(t, by)
			check(all[i%2])
		}
	}

	// What a database holds gets older though its member's clock was set back.
	clocks[0].Set(t, 0)
	check(east)
	clocks[0].Set(t, -10*time.Hour)
	west.kill()
	witness.kill()
	eventually(t, "a read of at most a second's age is refused", func() bool {
		_, err := east.client.Get(ctx, "t", "k", client.Staleness(time.Second))
		return errors.Is(err, client.ErrUnavailable)
	})
	var meta client.Meta
	if _, err := east.client.Get(ctx, "t", "k", client.Read(api.Local), client.WithMeta(&meta)); err != nil || meta.Staleness < time.Second {
		t.Errorf("a local read says that it is %v old, %v", meta.Staleness, err)
	}
}

func TestAge(t *testing.T) {
	then := time.Now()
	wall := then.Round(0) // without the monotonic clock
	for _, c := range []struct {
		name string
		then time.Time
		want time.Duration
	}{
		{"as time goes", then, time.Second},
		{"the wall clock alone tells, as after a sleep", wall.Add(-time.Minute), time.Minute + time.Second},
	} {
		if got := age(c.then, then.Add(time.Second)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCertificatesExpire has the certificates of a running cluster expire, and renews them.
func TestCertificatesExpire(t *testing.T) {
	ctx := t.Context()
	all := planProcesses(t)
	dir := filepath.Join(t.TempDir(), "pki")
	now := time.Now()
	authority, err := ca.Init(dir, "test", 365, now)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	issue := func(name string, role ca.Role, hosts ...string) {
		t.Helper()
		if err := authority.Issue(ca.Subject{Name: name, Role: role, Hosts: hosts}, 30, now); err != nil {
			t.Fatal(err)
		}
	}
	issue("app", ca.Application)
	for _, p := range all {
		host, _, err := net.SplitHostPort(p.config.Listen)
		if err != nil {
			t.Fatal(err)
		}
		peer, _, err := net.SplitHostPort(p.config.Peer)
		if err != nil {
			t.Fatal(err)
		}
		name := p.config.Name
		issue(name, ca.Member, host, peer)
		p.config.Certificate, p.config.Key, p.config.Authority = file(name+".crt"), file(name+".key"), file("ca.crt")
	}
	var clocks []*wallclock.Clock
	for _, p := range all {
		p.start()
		clocks = append(clocks, wallclock.Of(t, p.cmd.Process.Pid))
	}
	// connect is an application's client as of a time, with connections of its own.
	connect := func(at time.Duration) *client.Client {
		t.Helper()
		id, err := ca.Load(file("app.crt"), file("app.key"), file("ca.crt"), now.Add(at))
		if err != nil {
			t.Fatal(err)
		}
		clock := func() time.Time { return time.Now().Add(at) }
		c, err := client.New(client.Config{Endpoints: []string{all[0].config.Listen}, TLS: id.Client(clock, ca.Member), Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	before := connect(0)
	eventually(t, "there is a table", func() bool { return before.CreateTable(ctx, "t", client.Ack(api.Applied)) == nil })
	day := 24 * time.Hour
	if s, err := before.Status(ctx); err != nil || s.Certificate == nil || s.Certificate.LeftS < int64((29*day).Seconds()) || s.Problem != "" {
		t.Errorf("status %+v, %v", s, err)
	}

	const late = 40 * 24 * time.Hour
	for _, c := range clocks {
		c.Set(t, late)
	}
	if _, err := connect(0).Put(ctx, "t", "k", map[string]int{"n": 1}); !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a connection of after the end: %v", err)
	}
	if s, err := before.Status(ctx); err != nil || s.Certificate.LeftS >= 0 || !strings.Contains(s.Problem, "expired") {
		t.Errorf("a connection of before: %+v, %v", s, err)
	}
	for _, name := range []string{"app", all[0].config.Name, all[1].config.Name, all[2].config.Name} {
		if err := authority.Renew(name, 30, now.Add(late)); err != nil {
			t.Fatal(err)
		}
	}
	after := connect(late)
	eventually(t, "renewed certificates are taken up", func() bool {
		_, err := after.Put(ctx, "t", "k", map[string]int{"n": 2})
		return err == nil
	})
	if s, err := after.Status(ctx); err != nil || s.Certificate.LeftS < int64((29*day).Seconds()) || s.Problem != "" {
		t.Errorf("status %+v, %v", s, err)
	}
}
