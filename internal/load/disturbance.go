package load

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"skerry/internal/kernel/procfs"
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

// stealMeter tells what this process could not have of the processors.
type stealMeter struct {
	stolen  *procfs.StealCounter
	threads map[string]*threadWait // by ID
	samples int
	buf     [1 << 12]byte
}

// threadWait is how long a thread has been ready to run without running.
type threadWait struct {
	file *os.File
	ns   int64
}

// threadScanPeriod is every how many looks threads that began since are found.
const threadScanPeriod = 50

func newStealMeter() (*stealMeter, error) {
	stolen, err := procfs.NewStealCounter()
	if err != nil {
		return nil, err
	}
	p := &stealMeter{stolen: stolen, threads: map[string]*threadWait{}}
	p.findThreads()
	p.measure()
	return p, nil
}

// findThreads finds new threads. On a kernel that does not count waits (CONFIG_SCHED_INFO) there is
// nothing to be found, and steal alone marks.
func (p *stealMeter) findThreads() {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range entries {
		if p.threads[e.Name()] != nil {
			continue
		}
		f, err := os.Open("/proc/self/task/" + e.Name() + "/schedstat")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			w := &threadWait{file: f}
			w.ns, _ = w.read(p.buf[:])
			p.threads[e.Name()] = w
		}
	}
}

// measure is, since the last call, the processor time that the hypervisor took for others, and
// the longest that one thread waited. What cannot be read counts as nothing.
func (p *stealMeter) measure() (stolen, waited time.Duration) {
	stolen = p.stolen.Delta()
	if p.samples%threadScanPeriod == 0 {
		p.findThreads()
	}
	p.samples++
	for id, w := range p.threads {
		ns, ok := w.read(p.buf[:])
		if !ok { // it has ended
			w.file.Close()
			delete(p.threads, id)
			continue
		}
		waited, w.ns = max(waited, time.Duration(ns-w.ns)), ns
	}
	return stolen, waited
}

// read is the second number of "running waiting slices".
func (w *threadWait) read(buf []byte) (ns int64, ok bool) {
	n, err := w.file.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return 0, false
	}
	fields := bytes.Fields(buf[:n])
	if len(fields) < 2 {
		return 0, false
	}
	ns, err = strconv.ParseInt(string(fields[1]), 10, 64)
	return ns, err == nil
}

func (p *stealMeter) close() {
	for _, w := range p.threads {
		w.file.Close()
	}
	p.stolen.Close()
}
