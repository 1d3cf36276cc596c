package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/test/testkit/testhost"
)

// A server is halted once, and another may run in its place.
func TestSeat(t *testing.T) {
	s, h := newSet(t), testhost.Loopback(t, 1)[0]
	var seat Seat
	if seat.Server() != nil || seat.Halted() {
		t.Errorf("an empty seat has %v, halted %t", seat.Server(), seat.Halted())
	}
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		d := start1(t, s, h, forever)
		seat.SetServer(d)
		if seat.Server() != d || seat.Halted() {
			t.Errorf("%s: %v, halted %t", manner, seat.Server(), seat.Halted())
		}
		for range 2 {
			if err := seat.Halt(t.Context(), manner); err != nil || d.Running() || !seat.Halted() {
				t.Errorf("%s: running %t, halted %t, %v", manner, d.Running(), seat.Halted(), err)
			}
		}
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	var empty Seat
	if err := empty.Halt(t.Context(), database.Abrupt); err != nil || !empty.Halted() {
		t.Errorf("an empty seat: halted %t, %v", empty.Halted(), err)
	}
}

// A server that leaves may take its time, but not for ever.
func TestEnd(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context
		script   string
		patience time.Duration
	}{
		"by itself":                    {t.Context(), "exit 0", time.Minute},
		"on its own, with exit code 1": {t.Context(), "exit 3", time.Minute},
		"not on its own":               {t.Context(), forever, time.Millisecond},
		"canceled":                     {gone, forever, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := newSet(t), testhost.Loopback(t, 1)[0]
			spec := server(h, c.script)
			spec.Joining = true // its exit is not a failure, also before Leaving
			d, err := s.Start(t.Context(), h, spec)
			if err != nil {
				t.Fatal(err)
			}
			d.MarkLeaving()
			if err := d.AwaitEnd(c.ctx, c.patience); err != nil || d.Running() {
				t.Errorf("running %t, %v", d.Running(), err)
			}
			if err := s.Err(); err != nil {
				t.Errorf("a requested stop counts as a failure: %v", err)
			}
		})
	}
}

// TestKill ends servers that SIGTERM does not end.
func TestKill(t *testing.T) {
	s, nodes := newSet(t), testhost.Loopback(t, 3)
	var all []*Daemon
	for _, h := range nodes {
		d := start1(t, s, h, `trap "" TERM; while :; do sleep 0.1; done`)
		d.spec.Grace = time.Hour
		all = append(all, d)
	}
	if err := errors.Join(s.Kill(), s.Kill(), s.Err()); err != nil {
		t.Error(err)
	}
	for _, d := range all {
		if d.Running() {
			t.Errorf("%s on %s is left", d.Name(), d.Host.Name())
		}
	}
	if _, err := s.Start(t.Context(), nodes[0], server(nodes[0], forever)); !errors.Is(err, ErrStopped) {
		t.Errorf("starting after the end: error %v", err)
	}
}
