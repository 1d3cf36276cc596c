package hydra

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// TestLogsLost takes all members' logs away and leaves their databases. The new log that they
// begin acknowledges nothing that the databases would not have; a log that is begun after what
// one database holds has every row of it, in every cloud, and goes on.
func TestLogsLost(t *testing.T) {
	all, ctx := startProcesses(t), t.Context()
	east := all[0].client
	if err := east.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	const rows = 20
	var last api.Written
	for i := range rows {
		var err error
		if last, err = east.Put(ctx, "t", fmt.Sprint("k", i), map[string]int{"n": i}, hydraclient.Ack(api.Everywhere)); err != nil {
			t.Fatal(err)
		}
	}
	killAll := func() {
		for _, p := range all {
			p.kill()
		}
	}
	loseLogs := func() {
		t.Helper()
		for _, p := range all {
			if err := os.RemoveAll(p.config.logDir()); err != nil {
				t.Fatal(err)
			}
		}
	}
	killAll()
	loseLogs()
	for _, p := range all {
		p.start()
	}
	for _, p := range all[:2] {
		eventually(t, p.config.Name+" refuses its database", func() bool {
			s, err := p.client.Status(ctx)
			return err == nil && strings.Contains(s.Problem, ErrForeign.Error()) && strings.Contains(s.Problem, "adopt")
		})
	}
	if w, err := east.Put(ctx, "t", "new", map[string]int{}); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a write that no database would apply: %+v, %v", w, err)
	}
	if row, err := east.Get(ctx, "t", "k1", hydraclient.Read(api.Local)); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a row of another log: %s, %v", row.Value, err)
	}

	killAll()
	if _, err := Adopt(ctx, all[0].config, nil, false); err == nil || !strings.Contains(err.Error(), "there is a log") {
		t.Errorf("a log was begun over another one: %v", err)
	}
	loseLogs()
	b, err := Adopt(ctx, all[0].config, nil, false)
	if err != nil || b.After < last.Version {
		t.Fatalf("the new log begins at %v, %v; the last row is of %d", b, err, last.Version)
	}
	again, err := ParseBeginning(b.String())
	if err != nil || again != b {
		t.Fatalf("%v, %v", again, err)
	}
	if _, err := Adopt(ctx, all[1].config, &b, false); !errors.Is(err, ErrForeign) {
		t.Errorf("the rows of the other cloud: %v", err)
	}
	for _, p := range all[1:] {
		if _, err := Adopt(ctx, p.config, &b, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		p.start()
	}
	for i, p := range all[:2] {
		eventually(t, p.config.Name+" serves", func() bool { return p.client.Ready(ctx) == nil })
		if n, err := p.client.Count(ctx, "t"); err != nil || n != int64(rows+i) {
			t.Errorf("%s has %d rows, %v", p.config.Name, n, err)
		}
		row, err := p.client.Get(ctx, "t", fmt.Sprint("k", rows-1), hydraclient.Read(api.Local))
		if err != nil || row.Version != last.Version {
			t.Errorf("%s has the last row in version %d, %v; want %d", p.config.Name, row.Version, err, last.Version)
		}
		if w, err := p.client.Put(ctx, "t", fmt.Sprint("new", i), map[string]int{}, hydraclient.Ack(api.Everywhere)); err != nil || w.Version <= b.After {
			t.Errorf("a write at %s: %+v, %v", p.config.Name, w, err)
		}
	}
}
