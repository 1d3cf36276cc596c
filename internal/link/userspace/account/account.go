// Package account holds what one direction of a link did to packets against what was set.
//
// Two laws define a link. Both are checked for every delivered packet, from the times of its way
// and from the settings in force, without the code that computed those times:
//
//		arrived ──── waits ────┬── is transmitted ──► departed ── latency, jitter ──► handed over
//		                     start
//
//	  - Wire: a packet starts when it has arrived and the packet before it has departed. Between start
//	    and departure the rates in force transmit exactly its bits. Less is Fast, more is Slow.
//	  - Delay: between departure and hand-over pass the latency in force at the departure, a jitter
//	    within the distribution's range, and the emulator's own lateness. Less is Early, more is Late.
//
// Together they imply that no more than rate x time + one packet comes out in any interval of
// constant latency, and that the queue drains at the rate in force.
package account

import (
	"math"
	"slices"
	"time"

	"skerry/internal/link"
)

// tolerance of both laws, in ns: times are rounded to whole nanoseconds, and packets are read
// up to 50 us before the time that they count from (see dataplane, read).
const tolerance = int64(50 * time.Microsecond)

// maxSettings is how many settings are kept. A packet that departed under an older one is not judged.
const maxSettings = 32

// setting is a quality and since when it holds.
type setting struct {
	since     int64
	latency   int64
	low, high int64   // of the jitter, around the latency
	variance  float64 // of the jitter, us²
	rate      float64 // bits per ns; 0 is no limit
	reorders  bool    // packets that overtake occupy the wire unseen
}

// Timing is the times of one packet on its way over the link, in ns of one clock.
type Timing struct {
	Arrived, Departed int64
	Due, HandedOver   int64
	Bytes             int64
	// Foreign says that another machine decided when the packet is due.
	RemoteDue bool
}

// Account is the record of one direction. One thread at a time may use it.
type Account struct {
	settings [maxSettings]setting
	set      uint64 // settings so far; the last one is settings[(set-1) % remembered]

	departed int64 // when the last packet departed
	due      int64 // when it was due

	seen   link.Account
	delays [link.DelayBuckets]uint64
}

// New begins an account at a time with a quality.
func New(now int64, q link.Quality) *Account {
	a := &Account{departed: math.MinInt64, due: math.MinInt64}
	a.addSetting(now, q)
	return a
}

// Set notes that a quality holds from a time on.
func (a *Account) Set(now int64, q link.Quality) {
	a.seen.Changes++
	a.addSetting(now, q)
}

func (a *Account) addSetting(now int64, q link.Quality) {
	s := &a.settings[a.set%maxSettings]
	a.set++
	*s = setting{since: now, latency: int64(q.Latency), rate: float64(q.Bandwidth) / 1e9, reorders: q.Reorder > 0}
	if q.Jitter > 0 {
		low, high, deviation := q.Distribution.Range()
		jitter := float64(q.Jitter)
		s.low, s.high = int64(low*jitter), int64(high*jitter)
		s.variance = deviation * jitter * deviation * jitter / 1e6
	}
	s.low = max(s.low, -s.latency)
}

// settingAt returns the setting in force at a time and the number of the change that made it, 0 for the
// first one; nil if it is not remembered.
func (a *Account) settingAt(time int64) (in *setting, change uint64) {
	for i := a.set; i > 0 && a.set-i < maxSettings; i-- {
		if s := &a.settings[(i-1)%maxSettings]; s.since <= time || i == 1 {
			return s, i - 1
		}
	}
	return nil, 0
}

// Drop notes that a packet was dropped because the link is down.
func (a *Account) Drop() { a.seen.Confirmed = a.seen.Changes }

// Deliver judges a packet.
func (a *Account) Deliver(w Timing) {
	delay := w.HandedOver - w.Arrived
	a.seen.Packets++
	a.seen.Delay += time.Duration(delay)
	a.seen.Queued += time.Duration(w.Departed - w.Arrived)
	a.delays[link.DelayBucket(time.Duration(delay))]++
	obeys := a.checkWire(w)
	if s, change := a.settingAt(w.Departed); s != nil {
		if !w.RemoteDue && !a.checkDelay(w, s) {
			obeys = false
		}
		if obeys {
			a.seen.Confirmed = max(a.seen.Confirmed, change)
		}
	}
	a.departed, a.due = w.Departed, w.Due
}

// checkWire holds the time on the wire against the rates in force meanwhile, from the last one
// back to the one in force at the start.
func (a *Account) checkWire(w Timing) (obeys bool) {
	start := max(w.Arrived, a.departed)
	left := float64(8 * w.Bytes) // bits that the rates looked at have not transmitted
	until := w.Departed
	reorders := false
	for i := a.set; i > 0 && a.set-i < maxSettings; i-- {
		s := &a.settings[(i-1)%maxSettings]
		reorders = reorders || s.reorders
		if s.since > until && i > 1 {
			continue
		}
		since := start
		if i > 1 {
			since = max(s.since, start)
		}
		if s.rate == 0 {
			// Without a limit a packet departs when it starts, or when the limit is lifted.
			return a.judgeWire(float64(since-until), reorders)
		}
		left -= float64(until-since) * s.rate
		until = since
		if since == start {
			return a.judgeWire(left/s.rate, reorders)
		}
	}
	return true // it started before the oldest setting
}

// judgeWire counts a breach: a packet was transmitted some ns too fast, or too slowly where
// that is negative.
func (a *Account) judgeWire(fast float64, reorders bool) (obeys bool) {
	switch {
	case fast > float64(tolerance):
		a.seen.Fast.Add(time.Duration(fast))
		return false
	case fast < -float64(tolerance) && !reorders:
		a.seen.Slow.Add(time.Duration(-fast))
		return false
	}
	return true
}

// checkDelay holds the time from the wire to the hand-over against the latency.
func (a *Account) checkDelay(w Timing, s *setting) (obeys bool) {
	given := w.HandedOver - w.Departed
	spread := given - s.latency
	us := float64(spread) / 1e3
	a.seen.Spread += time.Duration(spread)
	a.seen.Squares += us * us
	a.seen.SetSquares += s.variance
	late := max(0, w.HandedOver-w.Due)
	switch {
	case spread < s.low-tolerance:
		a.seen.Early.Add(time.Duration(s.low - spread))
		return false
	case spread > s.high+late+tolerance && w.Due > a.due: // else it waits for the packet before it
		a.seen.Late.Add(time.Duration(spread - s.high - late))
		return false
	}
	return true
}

// Snapshot is a copy of the figures of an account, made without allocating.
type Snapshot struct {
	seen   link.Account
	delays [link.DelayBuckets]uint64
}

// Copy fills a snapshot. Waiting and flying are what the direction holds at the moment: bytes that
// have not left the wire, and packets that have.
func (a *Account) Copy(to *Snapshot, waiting int64, flying int) {
	to.seen, to.delays = a.seen, a.delays
	to.seen.Known, to.seen.Waiting, to.seen.Flying = true, waiting, int64(flying)
}

// Account returns the figures.
func (s *Snapshot) Account() link.Account {
	last := len(s.delays)
	for last > 0 && s.delays[last-1] == 0 {
		last--
	}
	got := s.seen
	got.Delays = slices.Clone(s.delays[:last])
	return got
}
