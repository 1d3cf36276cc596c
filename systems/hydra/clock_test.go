package hydra

import (
	"errors"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/unit"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/testkit"
)

// TestClockJumps sets the wall clocks of running members forward and back by hours.
func TestClockJumps(t *testing.T) {
	ctx := t.Context()
	all := planProcesses(t)
	east, west, witness := all[0], all[1], all[2]
	var clocks []*testkit.WallClock
	for _, p := range all {
		p.config.Timeout = unit.Duration(1500 * time.Millisecond)
		p.start()
		clocks = append(clocks, testkit.AttachClock(t, p.cmd.Process.Pid))
	}
	eventually(t, "the table is created", func() bool { return east.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)) == nil })
	once := api.Transaction{RequestID: "once", Writes: []api.Write{{Do: command.Add, Table: "t", Key: "k", Value: []byte(`{"n":1}`)}}}
	check := func(p *process) {
		t.Helper()
		eventually(t, "the earlier order is not applied twice", func() bool {
			_, err := p.client.Transact(ctx, once)
			return err == nil
		})
		for what, o := range map[string]hydraclient.Option{"local": hydraclient.Read(api.Local),
			"bounded": hydraclient.Staleness(10 * time.Second), "linearizable": hydraclient.Read(api.Linearizable)} {
			var meta hydraclient.Meta
			eventually(t, what+" read reports a plausible age", func() bool {
				row, err := p.client.Get(ctx, "t", "k", o, hydraclient.WithMeta(&meta))
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

	// The contents of a database age although its member's clock was set back.
	clocks[0].Set(t, 0)
	check(east)
	clocks[0].Set(t, -10*time.Hour)
	west.kill()
	witness.kill()
	eventually(t, "a read with a maximum age of 1 s is refused", func() bool {
		_, err := east.client.Get(ctx, "t", "k", hydraclient.Staleness(time.Second))
		return errors.Is(err, hydraclient.ErrUnavailable)
	})
	var meta hydraclient.Meta
	if _, err := east.client.Get(ctx, "t", "k", hydraclient.Read(api.Local),
		hydraclient.WithMeta(&meta)); err != nil || meta.Staleness < time.Second {
		t.Errorf("a local read reports an age of %v, %v", meta.Staleness, err)
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
		{"only the wall clock advanced, as after a suspend", wall.Add(-time.Minute), time.Minute + time.Second},
	} {
		if got := maxAge(c.then, then.Add(time.Second)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestCertificatesExpire lets the certificates of a running cluster expire and then renews them.
func TestCertificatesExpire(t *testing.T) {
	ctx := t.Context()
	all := planProcesses(t)
	pki := newKeys(t)
	for _, p := range all {
		name := p.config.Name
		pki.member(p.config)
		p.config.Certificate, p.config.Key, p.config.Authority = pki.file(name+".crt"), pki.file(name+".key"), pki.file("ca.crt")
	}
	var clocks []*testkit.WallClock
	for _, p := range all {
		p.start()
		clocks = append(clocks, testkit.AttachClock(t, p.cmd.Process.Pid))
	}
	// connect returns an application's client whose clock shows the given time.
	connect := func(at time.Duration) *hydraclient.Client { return pki.app(all[0].config.Listen, at) }
	before := connect(0)
	eventually(t, "the table is created", func() bool { return before.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)) == nil })
	day := 24 * time.Hour
	eventually(t, "no problem is reported", func() bool {
		s, err := before.Status(ctx)
		return err == nil && s.Certificate != nil && s.Certificate.LeftS >= int64((29*day).Seconds()) && s.Problem == ""
	})

	const late = 40 * 24 * time.Hour
	for _, c := range clocks {
		c.Set(t, late)
	}
	if _, err := connect(0).Put(ctx, "t", "k", map[string]int{"n": 1}); !errors.Is(err,
		hydraclient.ErrUnavailable) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a connection made after the expiry: %v", err)
	}
	if s, err := before.Status(ctx); err != nil || s.Certificate.LeftS >= 0 || !strings.Contains(s.Problem, "expired") {
		t.Errorf("a connection made before the expiry: %+v, %v", s, err)
	}
	for _, name := range []string{"app", all[0].config.Name, all[1].config.Name, all[2].config.Name} {
		if err := pki.authority.Renew(name, 30, pki.born.Add(late)); err != nil {
			t.Fatal(err)
		}
	}
	after := connect(late)
	eventually(t, "the renewed certificates are loaded", func() bool {
		_, err := after.Put(ctx, "t", "k", map[string]int{"n": 2})
		return err == nil
	})
	if s, err := after.Status(ctx); err != nil || s.Certificate.LeftS < int64((29*day).Seconds()) || s.Problem != "" {
		t.Errorf("status %+v, %v", s, err)
	}
}
