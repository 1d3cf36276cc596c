package load

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = time.Second
	// maxListed bounds the keys that a result lists.
	maxListed = 1000
)

// segment is the warm-up or the measurement: a stretch of operations at one pace.
// Times are since the driver's base.
type segment struct {
	pace       pace
	paced      bool // operations are due at times of their own
	load       bool
	first      uint64 // number of its first operation in the workload
	operations int64  // 0: no bound
	start, end time.Duration
	skip       bool
	tolerance  time.Duration
	giveUp     time.Duration
	// now is the driver's clock.
	now func() time.Duration

	once          sync.Once
	stopRequested atomic.Bool
	// reason and at are set by stop before it closes stopped.
	reason  string
	at      time.Duration
	stopped chan struct{}

	lastAck             atomic.Int64 // ns; coarse
	mu                  sync.Mutex
	unacknowledgedKeys  []string // guarded by mu
	unacknowledgedCount int64    // guarded by mu
}

// stop ends the segment: no further operation begins.
func (g *segment) stop(reason string) {
	g.once.Do(func() {
		g.reason, g.at = reason, g.now()
		g.stopRequested.Store(true)
		close(g.stopped)
	})
}

// closedAt tells whether no further operation may begin. Where operations are due at
// times of their own, those that are due before the end are all sent or dropped.
func (g *segment) closedAt(now time.Duration) bool {
	return g.stopRequested.Load() || !g.paced && g.expiredAt(now)
}

// expiredAt tells whether the segment's time has run out.
func (g *segment) expiredAt(now time.Duration) bool { return g.end > 0 && now >= g.end }

// outcome tells, once all workers have returned at now, what ended the segment and
// for how long it sent operations, or until the last of a given number had ended.
func (g *segment) outcome(now time.Duration) (why string, took time.Duration) {
	select {
	case <-g.stopped:
		// Of drives side by side the first that ends stops the others, which may only wait for answers by then: their
		// time had run out before, and what they sent is a rate over that time.
		if !g.expiredAt(g.at) {
			return g.reason, g.at - g.start
		}
	default:
	}
	// The pace may have handed out more than was due: it cannot tell.
	if g.operations > 0 && (g.end == 0 || now < g.end) {
		return StoppedOperations, now - g.start
	}
	return StoppedDuration, min(now, g.end) - g.start
}

// acknowledged notes that an insert succeeded, not more often than needed: the word
// is shared by all workers.
func (g *segment) acknowledged(at time.Duration) {
	const coarse = 100 * time.Millisecond
	if last := time.Duration(g.lastAck.Load()); at-last > coarse {
		g.lastAck.Store(int64(at))
	}
}

// awaitRetry waits before an insert is tried again; false when it should not be.
func (g *segment) awaitRetry(now, backoff time.Duration) bool {
	if g.closedAt(now) || g.expiredAt(now) {
		return false
	}
	if now-max(g.start, time.Duration(g.lastAck.Load())) > g.giveUp {
		g.stop(StoppedGaveUp)
		return false
	}
	t := time.NewTimer(backoff)
	defer t.Stop()
	select {
	case <-t.C:
		return !g.closedAt(g.now()) && !g.expiredAt(g.now())
	case <-g.stopped:
		return false
	}
}

// unacknowledged lists a key whose insert was given up.
func (g *segment) unacknowledged(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unacknowledgedCount++
	if len(g.unacknowledgedKeys) < maxListed {
		g.unacknowledgedKeys = append(g.unacknowledgedKeys, key)
	}
}
