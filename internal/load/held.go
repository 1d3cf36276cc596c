package load

import (
	"sync"
	"time"
)

// Held is what an interval holds of the time in which the driver was held up: the hypervisor
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
type Held struct {
	For   time.Duration `json:"for_ns"`   // how much of the interval is marked
	Steal time.Duration `json:"steal_ns"` // processor time that the hypervisor took, of all processors
	Ended int64         `json:"ended"`    // operations that ended ok in a mark
	// Response of the operations that ended ok and were held.
	Response Histogram `json:"response"`
	Late     Histogram `json:"late"` // of Totals.Late, what falls on a mark
}

const (
	// lookEvery is how often the driver looks whether it was held up.
	lookEvery = 10 * time.Millisecond
	// leastWait of a thread in one look is a processor that was taken: where nothing else
	// wants one, threads wait for microseconds.
	leastWait = 2 * time.Millisecond
)

// passed is an operation or a waking up that is over, until it is known whether it was held.
type passed struct {
	from, sent, at time.Duration // meant to be, was sent, was done
	late           bool          // from is when it was to wake up, at when it did
}

// mark is a stretch of the driver's time in which it was held up.
type mark struct{ from, to time.Duration }

// marks find out when the driver was held up, and what of its operations that concerns.
type marks struct {
	// since tells, of the time since its last call, how much of all processors the hypervisor
	// took, and how long a thread waited at the most.
	since  func() (stolen, waited time.Duration)
	shards []*shard

	mu    sync.Mutex
	began time.Duration // marks before it are of an earlier interval
	upTo  time.Duration // what was before is looked at
	all   []mark        // apart, in order
	idle  []passed      // room for what a shard has kept
	held  Held          // of the interval
}

func newMarks(shards []*shard, since func() (stolen, waited time.Duration), now time.Duration) *marks {
	return &marks{since: since, shards: shards, began: now, upTo: now}
}

// look marks what was disturbed since the last look, and takes in what ended since.
func (m *marks) look(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stolen, waited := m.since()
	m.held.Steal += stolen
	if stolen > 0 || waited >= leastWait {
		// Both are told at their end, and may have begun before the last look.
		m.add(mark{max(0, min(m.upTo, now-max(stolen, waited))), now})
	}
	m.upTo = now
	for _, s := range m.shards {
		m.idle = s.take(m.idle)
		for _, e := range m.idle {
			m.sort(e)
		}
	}
}

// add adds a mark that ends last.
func (m *marks) add(x mark) {
	for len(m.all) > 0 && m.all[len(m.all)-1].to >= x.from {
		x.from = min(x.from, m.all[len(m.all)-1].from)
		m.all = m.all[:len(m.all)-1]
	}
	m.all = append(m.all, x)
}

// sort counts what ended where it was held.
func (m *marks) sort(e passed) {
	switch {
	case e.late:
		if m.touch(e.from, e.at) {
			m.held.Late.Record(e.at - e.from)
		}
		return
	case m.touch(e.at, e.at):
		m.held.Ended++
	case !m.touch(e.from, e.sent):
		return
	}
	m.held.Response.Record(e.at - e.from)
}

// touch tells whether a mark lies in a stretch of time. Almost all stretches are short and
// recent.
func (m *marks) touch(from, to time.Duration) bool {
	for i := len(m.all) - 1; i >= 0 && m.all[i].to >= from; i-- {
		if m.all[i].from <= to {
			return true
		}
	}
	return false
}

// flush ends an interval and returns what was held of it, nil for nothing.
func (m *marks) flush(now time.Duration) *Held {
	m.look(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held
	for i := len(m.all) - 1; i >= 0 && m.all[i].to > m.began; i-- {
		h.For += m.all[i].to - max(m.began, m.all[i].from)
	}
	m.held, m.began = Held{}, now
	if h.For == 0 {
		return nil
	}
	return &h
}
