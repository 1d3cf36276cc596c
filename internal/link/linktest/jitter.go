package linktest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/testkit"
)

// jitterRates tests links with the same jitter at different packet rates, all at the same time.
func (s *suite) jitterRates(t *testing.T) {
	const mean, jitter = 50.0, 5.0 // ms
	const lasting = 4 * time.Second
	// Permitted errors of median and deviation in ms. Delays may be correlated for 16 times the jitter, so 4 s contain
	// at least 50 independent ones: the median deviates by 0.9 ms, the deviation by 0.5 ms.
	medianOff, deviationOff := 3*float64(s.pace), 1.8*float64(s.pace)
	rates := []int{20, 200, 2000} // at the first rate they are ten times the jitter apart
	packets := func(rate int) int {
		if n := rate * int(lasting/time.Second); s.JitterByPacket == "" || rate == rates[0] {
			return n
		}
		return 500 // only their order is checked
	}
	b := s.bench(t)
	wires := make([]*wire, len(rates))
	for i := range rates {
		wires[i] = b.wire(i, link.Quality{Latency: mean * time.Millisecond, Jitter: jitter * time.Millisecond, Distribution: link.Normal}, perfect)
	}
	measure := func() (off float64, what string) {
		arrivals := make([][]probe.Arrival, len(rates))
		var group errgroup.Group
		for i, rate := range rates {
			group.Go(func() (err error) {
				train := probe.Train{Packets: packets(rate), Bytes: 200, Every: time.Second / time.Duration(rate), Quiet: s.pace * time.Second}
				arrivals[i], err = probe.SendTrain(t.Context(), wires[i].near, wires[i].far, train)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for i, rate := range rates {
			checkComplete(t, arrivals[i], packets(rate))
			if len(arrivals[i]) == 0 || s.JitterByPacket != "" && i > 0 {
				continue
			}
			sorted := slices.Sorted(slices.Values(delays(arrivals[i])))
			at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)))].Seconds() * 1000 }
			median, deviation := at(0.5), (at(0.9)-at(0.1))/2.563 // for a normal distribution
			off = max(off, math.Abs(median-mean)/medianOff, math.Abs(deviation-jitter)/deviationOff)
			what += fmt.Sprintf("%.1f ms, deviation %.1f, at %d packets/s; ", median, deviation, rate)
		}
		return off, what
	}
	var seen string
	limit := medianOff / mean
	found, tries := judgeTries(limit, func() (off, gone float64) {
		began := time.Now()
		held := measureAway(func() { off, seen = measure() })
		return off * limit, held.Seconds() / time.Since(began).Seconds()
	})
	switch found {
	case wrong:
		t.Errorf("the median delay is %swant %.0f and %.0f, and the machine does not explain it: %s", seen, mean, jitter, tries)
	case noisy:
		testkit.Lacks(t, testkit.Quiet, fmt.Errorf("the machine was never quiet for as long as jitter is measured: %s: %s", seen, tries))
	}
}
