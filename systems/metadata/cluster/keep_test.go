package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"skerry/systems/metadata"
)

// TestKeeperEndsWhatItsSweepWaitsFor has a server sweep while it has promised a transaction whose
// coordinator is away: to list what is left waits for the transaction, which the keeper ends when the
// coordinator is back.
func TestKeeperEndsWhatItsSweepWaitsFor(t *testing.T) {
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
		t.Fatal("the server has not swept")
	}
	g1.set(false, nil)
	for list, changed := g2.Transactions(); len(list) > 0; list, changed = g2.Transactions() {
		select {
		case <-changed:
		case <-late:
			t.Fatalf("while the server sweeps, nobody ends %+v", list)
		}
	}
}
