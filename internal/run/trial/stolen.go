package trial

import (
	"runtime"
	"sync"

	"skerry/internal/evidence/sample"
	"skerry/internal/evidence/steal"
	"skerry/internal/load"
	"skerry/internal/record"
)

// held takes down, second by second, what kept the driver from running.
type held struct {
	machine steal.Machine
	seconds []steal.Second // of the measurement

	mu        sync.Mutex
	foreign   float64 // cores, in the second that was sampled last
	throttled float64 // cores, of the client's node
}

func newHeld(cores float64) *held {
	return &held{machine: steal.Machine{Cores: float64(runtime.NumCPU()), DriverCores: cores}}
}

// sampled takes in what nodes and machine used.
func (h *held) sampled(client string, rows []record.NodeSecond) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range rows {
		switch r.Node {
		case sample.HostNode:
			h.foreign = r.Foreign
		case client:
			h.throttled = r.Throttled
		}
	}
}

// interval takes in a second of the driver, and returns for how long of it processors were taken
// from the trial, in seconds.
func (h *held) interval(i load.Interval) float64 {
	h.mu.Lock()
	s := steal.Second{Interval: i, Foreign: h.foreign, Throttled: h.throttled}
	h.mu.Unlock()
	if i.T >= 0 {
		s.Writes, s.Operations, s.Errors = nil, nil, nil // which nobody asks for
		h.seconds = append(h.seconds, s)
	}
	if !h.machine.Taken(s) {
		return 0
	}
	return s.Disturbance.For.Seconds()
}

func (h *held) found() record.Stolen { return steal.Find(h.machine, h.seconds) }
