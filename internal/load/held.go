package load

import (
	"sync"
	"time"
)

// Disturbance is what an interval holds of the time in which the driver was held up: the hypervisor
// had taken a processor of the machine, or a thread of the driver was ready to run and waited
// for one. Who took the processor is not the driver's to know.
//
//	thread     ──runs──┐ ready, waits ┌──runs──
//	marked             ├──────────────┤
//	operations ...e──┤ ├──b..         e        those that begin (b) or end (e) in it
//
// An operation is held by where it begins and ends, not by how long it lasts: were all left
// out that were under way in a mark, the long ones would go more often than the short, and
// percentiles move where nothing was disturbed.
type Disturbance struct {
	For   time.Duration `json:"for_ns"`   // how much of the interval is marked
	Steal time.Duration `json:"steal_ns"` // processor time that the hypervisor took, of all processors
	Ended int64         `json:"ended"`    // operations that ended ok in a mark
	// Response of the operations that ended ok and were held.
	Response Histogram `json:"response"`
	Late     Histogram `json:"late"` // of Totals.Late, what falls on a mark
}

const (
	// lookEvery is how often the driver looks whether it was held up.
	sampleInterval = 10 * time.Millisecond
	// leastWait of a thread in one look is a processor that was taken: where nothing else
	// wants one, threads wait for microseconds.
	minWait = 2 * time.Millisecond
)

// completion is an operation or a waking up that is over, until it is known whether it was held.
type completion struct {
	from, sent, at time.Duration // meant to be, was sent, was done
	wakeup         bool          // from is when it was to wake up, at when it did
}

// span is a stretch of the driver's time in which it was held up.
type span struct{ from, to time.Duration }

// disturbanceTracker find out when the driver was held up, and what of its operations that concerns.
type disturbanceTracker struct {
	// since tells, of the time since its last call, how much of all processors the hypervisor
	// took, and how long a thread waited at the most.
	measure func() (stolen, waited time.Duration)
	shards  []*shard

	mu            sync.Mutex
	intervalStart time.Duration // marks before it are of an earlier interval
	sampledTo     time.Duration // what was before is looked at
	spans         []span        // apart, in order
	buffer        []completion  // room for what a shard has kept
	current       Disturbance   // of the interval
}

func newDisturbanceTracker(shards []*shard, since func() (stolen, waited time.Duration), now time.Duration) *disturbanceTracker {
	return &disturbanceTracker{measure: since, shards: shards, intervalStart: now, sampledTo: now}
}

// sample marks what was disturbed since the last look, and takes in what ended since.
func (m *disturbanceTracker) sample(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stolen, waited := m.measure()
	m.current.Steal += stolen
	if stolen > 0 || waited >= minWait {
		// Both are told at their end, and may have begun before the last look.
		m.addSpan(span{max(0, min(m.sampledTo, now-max(stolen, waited))), now})
	}
	m.sampledTo = now
	for _, s := range m.shards {
		m.buffer = s.takeRecent(m.buffer)
		for _, e := range m.buffer {
			m.countIfHeld(e)
		}
	}
}

// addSpan adds a mark that ends last.
func (m *disturbanceTracker) addSpan(x span) {
	for len(m.spans) > 0 && m.spans[len(m.spans)-1].to >= x.from {
		x.from = min(x.from, m.spans[len(m.spans)-1].from)
		m.spans = m.spans[:len(m.spans)-1]
	}
	m.spans = append(m.spans, x)
}

// countIfHeld counts what ended where it was held.
func (m *disturbanceTracker) countIfHeld(e completion) {
	switch {
	case e.wakeup:
		if m.overlaps(e.from, e.at) {
			m.current.Late.Record(e.at - e.from)
		}
		return
	case m.overlaps(e.at, e.at):
		m.current.Ended++
	case !m.overlaps(e.from, e.sent):
		return
	}
	m.current.Response.Record(e.at - e.from)
}

// overlaps tells whether a mark lies in a stretch of time. Almost all stretches are short and
// recent.
func (m *disturbanceTracker) overlaps(from, to time.Duration) bool {
	for i := len(m.spans) - 1; i >= 0 && m.spans[i].to >= from; i-- {
		if m.spans[i].from <= to {
			return true
		}
	}
	return false
}

// flush ends an interval and returns what was held of it, nil for nothing.
func (m *disturbanceTracker) flush(now time.Duration) *Disturbance {
	m.sample(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.current
	for i := len(m.spans) - 1; i >= 0 && m.spans[i].to > m.intervalStart; i-- {
		h.For += m.spans[i].to - max(m.intervalStart, m.spans[i].from)
	}
	m.current, m.intervalStart = Disturbance{}, now
	if h.For == 0 {
		return nil
	}
	return &h
}
