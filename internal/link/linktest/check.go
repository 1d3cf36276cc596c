package linktest

import (
	"math"
	"slices"
	"testing"
	"time"

	"skerry/internal/link/probe"
)

// sigmas is the permitted deviation of a random count: a larger one happens once in 5e8 tests.
const sigmas = 6

// checkBinomial checks a count of n independent events of probability p.
func checkBinomial(t *testing.T, what string, got, n int, p float64) {
	t.Helper()
	mean := float64(n) * p
	bound := sigmas*math.Sqrt(mean*(1-p)) + 1
	if math.Abs(float64(got)-mean) > bound {
		t.Errorf("%s: %d of %d, want %.0f ± %.0f", what, got, n, mean, bound)
	}
}

// checkOrder checks that no packet overtook another.
func checkOrder(t *testing.T, arrivals []probe.Arrival) {
	t.Helper()
	for i := 1; i < len(arrivals); i++ {
		if arrivals[i].Seq < arrivals[i-1].Seq {
			t.Errorf("packet %d arrived before packet %d", arrivals[i-1].Seq, arrivals[i].Seq)
			return
		}
	}
}

// findMissing returns the packets of n that did not arrive, in order.
func findMissing(arrivals []probe.Arrival, n int) []int {
	here := make([]bool, n)
	for _, a := range arrivals {
		here[a.Seq] = true
	}
	var gone []int
	for seq, ok := range here {
		if !ok {
			gone = append(gone, seq)
		}
	}
	return gone
}

// checkComplete checks that n packets arrived once each and in order.
func checkComplete(t *testing.T, arrivals []probe.Arrival, n int) {
	t.Helper()
	if gone := findMissing(arrivals, n); len(gone) > 0 {
		t.Errorf("%d of %d packets were lost, the first %d", len(gone), n, gone[0])
	}
	if len(arrivals) > n {
		t.Errorf("%d packets arrived of %d sent", len(arrivals), n)
	}
	checkOrder(t, arrivals)
}

func delays(arrivals []probe.Arrival) []time.Duration {
	ds := make([]time.Duration, len(arrivals))
	for i, a := range arrivals {
		ds[i] = a.Delay()
	}
	return ds
}

// maxAttempts bounds the repetition of a measurement that the machine may have disturbed.
const maxAttempts = 5

// earlyTolerance is the permitted earliness of a round trip: an engine may subtract its own estimated delays.
const earlyTolerance = 50 * time.Microsecond

// checkDelay measures until the quickest packet is not late, and checks that none is early. The lateness of other
// packets depends on the machine.
func (s *suite) checkDelay(t *testing.T, what string, want time.Duration, measure func() []time.Duration) {
	t.Helper()
	var quickest time.Duration
	for range maxAttempts {
		got := measure()
		if len(got) == 0 {
			t.Errorf("%s: nothing arrived", what)
			return
		}
		if quickest = slices.Min(got); quickest <= want+s.Slack {
			break
		}
	}
	if quickest < want-earlyTolerance-s.Early || quickest > want+s.Slack {
		t.Errorf("%s: the quickest packet took %v, want %v and at most %v more", what, quickest, want, s.Slack)
	}
}
