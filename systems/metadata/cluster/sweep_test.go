package cluster_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"skerry/systems/metadata"
)

// told waits for what a sweep logs.
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

// TestSweepBelievesNoClock has a server find, when it has started, a directory for a subtree that
// is hours old by its clock, as one is that was made just now where that clock jumped: it is left.
func TestSweepBelievesNoClock(t *testing.T) {
	w := newWorld(t)
	young := metadata.Subtree{ID: "5f1c2a3b", Server: "g2"}.Base()
	left := metadata.Join(metadata.Incoming, "18912f3c2b6a7d10-5f1c2a3b") // of a transaction that nobody knows
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
