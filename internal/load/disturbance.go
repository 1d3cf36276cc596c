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

// Disturbance is the part of an interval in which the driver lacked CPU: the hypervisor took a
// processor of the machine, or a runnable thread of the driver had to wait for one. The driver does
// not know the cause.
//
//	thread     ──runs──┐ ready, waits ┌──runs──
//	disturbed          ├──────────────┤
//	operations ...e──┤ ├──b..         e        those that begin (b) or end (e) in it
//
// An operation counts as disturbed if it begins or ends in a disturbed span, whatever its duration.
// If every operation that overlaps a span counted, long operations would be removed more often than
// short ones, and percentiles of undisturbed time would change.
type Disturbance struct {
	For   time.Duration `json:"for_ns"`   // disturbed time of the interval
	Steal time.Duration `json:"steal_ns"` // processor time taken by the hypervisor, over all processors
	Ended int64         `json:"ended"`    // successful operations that ended in a disturbed span
	// Response times of successful operations that were disturbed.
	Response Histogram `json:"response"`
	Late     Histogram `json:"late"` // the part of Totals.Late in disturbed spans
}

const (
	sampleInterval = 10 * time.Millisecond
	// minWait is the shortest wait of a thread that counts as a disturbance. On an idle machine
	// threads wait for microseconds.
	minWait = 2 * time.Millisecond
)

// completion is a finished operation or wake-up that is not yet checked for a disturbance.
type completion struct {
	from, sent, at time.Duration // when it was due, was sent and was done
	wakeup         bool          // from is when the wake-up was due, at when it came
}

type span struct{ from, to time.Duration }

type disturbanceTracker struct {
	// measure returns the processor time that the hypervisor took since the last call, and the
	// longest wait of a thread.
	measure func() (stolen, waited time.Duration)
	shards  []*shard

	mu            sync.Mutex
	intervalStart time.Duration // end of the previous interval
	sampledTo     time.Duration // time of the last sample
	spans         []span        // disjoint, in order
	buffer        []completion  // reused for completions of a shard
	current       Disturbance   // of the current interval
}

func newDisturbanceTracker(shards []*shard, since func() (stolen, waited time.Duration), now time.Duration) *disturbanceTracker {
	return &disturbanceTracker{measure: since, shards: shards, intervalStart: now, sampledTo: now}
}

// sample detects a disturbance since the last call, and processes what has completed since.
func (m *disturbanceTracker) sample(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stolen, waited := m.measure()
	m.current.Steal += stolen
	if stolen > 0 || waited >= minWait {
		// Both values are known only at the end of the wait, which may have begun before the last
		// sample.
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

func (m *disturbanceTracker) addSpan(x span) {
	for len(m.spans) > 0 && m.spans[len(m.spans)-1].to >= x.from {
		x.from = min(x.from, m.spans[len(m.spans)-1].from)
		m.spans = m.spans[:len(m.spans)-1]
	}
	m.spans = append(m.spans, x)
}

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

// overlaps reports whether a disturbed span overlaps a period. Almost all periods are short and
// recent, so the search starts at the end.
func (m *disturbanceTracker) overlaps(from, to time.Duration) bool {
	for i := len(m.spans) - 1; i >= 0 && m.spans[i].to >= from; i-- {
		if m.spans[i].from <= to {
			return true
		}
	}
	return false
}

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

type stealMeter struct {
	stolen  *procfs.StealCounter
	threads map[string]*threadWait // by thread ID
	samples int
	buf     [1 << 12]byte
}

// threadWait is the time that a thread was runnable without running.
type threadWait struct {
	file *os.File
	ns   int64
}

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

// findThreads finds new threads. A kernel without CONFIG_SCHED_INFO does not count waits; then only
// steal is detected.
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

// measure returns, since the last call, the processor time that the hypervisor took and the longest
// wait of a thread. Unreadable values count as zero.
func (p *stealMeter) measure() (stolen, waited time.Duration) {
	stolen = p.stolen.Delta()
	if p.samples%threadScanPeriod == 0 {
		p.findThreads()
	}
	p.samples++
	for id, w := range p.threads {
		ns, ok := w.read(p.buf[:])
		if !ok { // the thread has ended
			w.file.Close()
			delete(p.threads, id)
			continue
		}
		waited, w.ns = max(waited, time.Duration(ns-w.ns)), ns
	}
	return stolen, waited
}

// read returns the second number of "running waiting slices".
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
