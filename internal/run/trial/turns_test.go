package trial

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTurns has many trials go through many rounds: whenever one measures none sets up, and all
// come to their end.
func TestTurns(t *testing.T) {
	turns := NewTurns()
	var setting, measuring atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				x := turn{of: turns}
				if err := x.setUp(t.Context()); err != nil {
					t.Error(err)
				}
				setting.Add(1)
				if measuring.Load() > 0 {
					t.Error("set up beside a measurement")
				}
				setting.Add(-1)
				if err := x.measure(t.Context()); err != nil {
					t.Error(err)
				}
				measuring.Add(1)
				if setting.Load() > 0 {
					t.Error("measured beside a setup")
				}
				measuring.Add(-1)
				if err := x.setUp(t.Context()); err != nil {
					t.Error(err)
				}
				x.leave()
			}
		})
	}
	all.Wait()
}

// A trial that fails or is interrupted holds nobody up.
func TestTurnsOfWhoLeaves(t *testing.T) {
	turns := NewTurns()
	a, b, c := turn{of: turns}, turn{of: turns}, turn{of: turns}
	for _, x := range []*turn{&a, &b} {
		if err := x.setUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.measure(gone); err == nil {
		t.Error("measured while another one sets up")
	}
	a.leave()
	b.leave()
	if err := c.measure(t.Context()); err != nil { // nobody is left
		t.Fatal(err)
	}
	var none turn
	if err := none.setUp(gone); err != nil {
		t.Error("a trial by itself waits for nobody")
	}
	none.leave()
}
