package linktest

import (
	"errors"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
)

// many creates, changes and measures twenty links, with one call each.
func (s *suite) many(t *testing.T) {
	const n = 20
	b := s.bench(t)
	var specs []link.Spec
	latency := func(i int) time.Duration { return time.Duration(1+i) * time.Millisecond }
	for i := range n {
		specs = append(specs, b.spec(i, link.Quality{Latency: latency(i)}, perfect))
	}
	b.create(specs...)
	var pairs []probe.Pair
	for i := range n {
		w := b.addressLink(i)
		pairs = append(pairs, probe.Pair{From: w.near, To: w.far})
	}
	check := func(what string, want func(i int) time.Duration) {
		t.Helper()
		rtts := b.roundTrips(pairs)
		for i := range pairs {
			s.checkDelay(t, what, want(i), func() []time.Duration {
				if rtts[i] == nil { // not the first attempt
					return b.roundTrips(pairs[i : i+1])[0]
				}
				first := rtts[i]
				rtts[i] = nil
				return first
			})
		}
	}
	check("as created", latency)

	var changes []link.Change
	later := link.Quality{Latency: 50 * time.Millisecond}
	for _, spec := range specs {
		changes = append(changes, link.Change{ID: spec.ID, AB: &later, BA: &later})
	}
	if err := b.engine.Set(t.Context(), changes); err != nil {
		t.Fatalf("Set: %v", err)
	}
	check("as set", func(int) time.Duration { return 100 * time.Millisecond })

	if got, err := b.engine.Stats(t.Context(), "link-3", "link-11"); err != nil || len(got) != 2 ||
		got[0].ID != "link-3" || got[1].ID != "link-11" {
		t.Errorf("Stats of two links = %+v, %v; want those two, in that order", got, err)
	}
}

// setAllOrNone makes the second change of a Set fail.
func (s *suite) setAllOrNone(t *testing.T) {
	w := s.wire(t, perfect, perfect)
	slow, wrong := link.Quality{Latency: 500 * time.Millisecond}, link.Quality{Loss: -1}
	tests := []struct {
		name string
		bad  link.Change
		want error
	}{
		{"unknown link", link.Change{ID: "never was", AB: &slow}, link.ErrUnknown},
		{"impossible quality", link.Change{ID: w.id, BA: &wrong}, link.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := w.engine.Set(t.Context(), []link.Change{{ID: w.id, AB: &slow}, tt.bad})
			if !errors.Is(err, tt.want) {
				t.Errorf("Set = %v, want %v", err, tt.want)
			}
			s.checkDelay(t, "after the failed change", 0, func() []time.Duration {
				return delays(w.send(s.flood(20)))
			})
		})
	}
}
