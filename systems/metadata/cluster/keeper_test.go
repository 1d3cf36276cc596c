package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
)

// TestKeeperEndsTransactionsDuringSweep sweeps a server that is prepared in a transaction whose coordinator is
// unreachable. The sweep waits for the transaction, which the keeper ends when the coordinator returns.
func TestKeeperEndsTransactionsDuringSweep(t *testing.T) {
	const lease = 20 * time.Millisecond
	w := newWorld(t)
	r := w.router(t, lease)
	must(t, r, "mkdir /b", "delegate /b g2", "write /f text")
	g1, g2 := w["g1"], w["g2"]
	g2.set(false, func(before bool, _ []metadata.Command) bool {
		if !before {
			g1.set(true, nil)
		}
		return false
	})
	if got := do(t, r, "mv /f /b/f"); !errors.Is(got.Err, metadata.ErrUnavailable) {
		t.Fatalf("mv: %v", got.Err)
	}
	running, end := context.WithCancel(t.Context())
	sweeps := make(chan struct{}, 1)
	g2.set(false, func(before bool, commands []metadata.Command) bool {
		if !before || commands[0].Op != metadata.List {
			return false
		}
		select {
		case sweeps <- struct{}{}:
		default:
		}
		for list, changed := g2.Transactions(); len(list) > 0 && running.Err() == nil; list, changed = g2.Transactions() {
			select {
			case <-changed:
			case <-running.Done():
			}
		}
		return false
	})
	var keepers sync.WaitGroup
	defer keepers.Wait()
	defer end()
	for name, m := range map[string]*machine{"g1": g1, "g2": g2} {
		keepers.Go(func() { r.RunKeeper(running, name, m.store(), slog.New(slog.DiscardHandler)) })
	}
	late := time.After(patience)
	select {
	case <-sweeps:
	case <-late:
		t.Fatal("the server did not finish its sweep")
	}
	g1.set(false, nil)
	for list, changed := g2.Transactions(); len(list) > 0; list, changed = g2.Transactions() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%+v is not ended while the server sweeps", list)
		}
	}
}

// TestUnreachableCoordinator loses the coordinator after the other server has prepared. The other server's locks
// stay, and everything else continues. The transaction ends when the coordinator returns, or by hand.
func TestUnreachableCoordinator(t *testing.T) {
	const lease = 20 * time.Millisecond
	for _, end := range []string{"back", "abort", "commit"} {
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			r := w.router(t, lease)
			must(t, r, "mkdir /b", "delegate /b g2", "mkdir /b/d", "write /f text")
			w["g2"].set(false, func(before bool, _ []metadata.Command) bool {
				if !before {
					w["g1"].set(true, nil)
				}
				return false
			})
			if got := do(t, r, "mv /f /b/f"); !errors.Is(got.Err, metadata.ErrUnavailable) {
				t.Fatalf("mv: %v", got.Err)
			}
			g2 := w["g2"].store()
			list, _ := g2.Transactions()
			if len(list) != 1 || list[0].Coordinator != "g1" || len(list[0].Locks) != 1 {
				t.Fatalf("transactions %+v", list)
			}
			if err := r.Settle(t.Context(), "g2", list[0]); err == nil {
				t.Error("the transaction was settled without its coordinator")
			}
			g2.Patience = time.Millisecond
			for line, locked := range map[string]bool{"create /b/d/x": false, "write /b/f y": true, "ls /b": true,
				"stat /b/d": false, "rm -r /b": true} {
				c, err := metadata.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				c.Path = base(t, w, "g2") + c.Path[len("/b"):]
				if got := g2.Do(t.Context(), []metadata.Command{c})[0]; errors.Is(got.Err, metadata.ErrLocked) != locked {
					t.Errorf("%s: %v", line, got.Err)
				}
			}
			w["g1"].set(false, nil)
			w["g2"].set(false, nil)
			switch end {
			case "back":
				w.runKeepers(t, lease)
				if got := do(t, r, "read /f"); string(got.Data) != "text" {
					t.Errorf("the source of the move: %+v", got)
				}
			case "abort":
				g2.Do(t.Context(), []metadata.Command{metadata.Step{Verb: metadata.Abort, Txn: list[0].Name}.Command("/", "")})
			case "commit":
				g2.Do(t.Context(), []metadata.Command{metadata.Step{Verb: metadata.Finish, Txn: list[0].Name}.Command("/", "")})
			}
			if got := do(t, r, "stat /b/f"); (got.Err == nil) != (end == "commit") {
				t.Errorf("the file: %v", got.Err)
			}
		})
	}
}

// base returns the directory of a server's only subtree.
func base(t *testing.T, w world, server string) string {
	t.Helper()
	r := w[server].store().Tree().Do(metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: 10})
	if len(r.Entries) != 1 {
		t.Fatalf("subtrees of %s: %+v", server, r)
	}
	return metadata.Subtrees + "/" + r.Entries[0].Name
}

// told waits for a log message of a sweep.
type told struct {
	slog.Handler
	removed chan []string
}

func (h told) Enabled(context.Context, slog.Level) bool { return true }

func (h told) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if paths, ok := a.Value.Any().([]string); ok {
			h.removed <- paths
		}
		return true
	})
	return nil
}

// TestSweepIgnoresWallClock gives a server, after its start, an empty subtree that is hours old by the wall clock,
// as if that clock had jumped. The sweep keeps it.
func TestSweepIgnoresWallClock(t *testing.T) {
	w := newWorld(t)
	young := metadata.Subtree{ID: "5f1c2a3b", Server: "g2"}.Base()
	left := metadata.Join(metadata.Incoming, "18912f3c2b6a7d10-5f1c2a3b") // of an unknown transaction
	for _, r := range w["g2"].Do(t.Context(), []metadata.Command{
		{Op: metadata.Mkdir, Path: young, Parents: true, MaxDepth: -1},
		{Op: metadata.Touch, Path: young, Time: time.Now().Add(-5 * time.Hour).UnixNano(), MaxDepth: -1},
		{Op: metadata.Mkdir, Path: left, Parents: true, MaxDepth: -1},
	}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	h := told{slog.DiscardHandler, make(chan []string, 1)}
	running, end := context.WithCancel(t.Context())
	var keeper sync.WaitGroup
	keeper.Go(func() { w.router(t, time.Millisecond).RunKeeper(running, "g2", w["g2"].store(), slog.New(h)) })
	defer keeper.Wait()
	defer end()
	select {
	case removed := <-h.removed:
		if len(removed) != 1 || removed[0] != left {
			t.Errorf("removed: %v, want %s", removed, left)
		}
	case <-time.After(patience):
		t.Fatal("nothing was removed")
	}
}

func TestClaims(t *testing.T) {
	g1 := cluster.Holding{Subtrees: map[string]string{"/home": "g3:/.subtrees/a.2", "/b": "g2:/.subtrees/b",
		"/.incoming/x/c": "g2:/.subtrees/c"}}
	g2 := cluster.Holding{Holds: []string{"/.subtrees/a.1", "/.subtrees/b", "/.subtrees/c"}}
	g3 := cluster.Holding{Holds: []string{"/.subtrees/a.2", "/.subtrees/c.10", "/.subtrees/d"}}
	for name, test := range map[string]struct {
		servers map[string]cluster.Holding
		want    []cluster.Claim
	}{
		"none": {servers: map[string]cluster.Holding{"g1": g1, "g2": g2}},
		"two": {servers: map[string]cluster.Holding{"g1": g1, "g2": g2, "g3": g3}, want: []cluster.Claim{
			{Holders: []string{"g3:/.subtrees/a.2", "g2:/.subtrees/a.1"}, Holder: "g3:/.subtrees/a.2", By: "g1:/home"},
			{Holders: []string{"g3:/.subtrees/c.10", "g2:/.subtrees/c"}},
		}},
	} {
		if diff := cmp.Diff(test.want, cluster.FindClaims(test.servers)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
