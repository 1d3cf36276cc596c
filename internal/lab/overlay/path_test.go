package overlay

import (
	"testing"
	"time"
)

func TestShortestRTTs(t *testing.T) {
	const ms = time.Millisecond
	wire := func(a, b string, rtt time.Duration) Link { return Link{A: a, B: b, Latency: rtt / 2} }
	links := []Link{wire("a", "c", 210*ms), wire("a", "c", 140*ms), wire("a", "b", 40*ms), wire("c", "b", 50*ms), wire("d", "e", ms)}
	got := ShortestRTTs(links)
	if got["a"]["c"] != 90*ms || got["c"]["a"] != 90*ms || got["a"]["a"] != 0 || got["e"]["d"] != ms {
		t.Errorf("shortest round trips: %v", got)
	}
	if _, joined := got["a"]["d"]; joined {
		t.Errorf("a and d are not connected, but have a distance of %v", got["a"]["d"])
	}
	if got := ShortestRTTs(append(links[:2:2], links[3:]...)); got["a"]["c"] != 140*ms || got["a"]["b"] != 190*ms {
		t.Errorf("without a~b: %v", got)
	}
}
