// Package account checks what one direction of a link did to packets against its settings, and counts how late
// packets were.
//
// Two laws define a link. Both are checked for every delivered packet. The check uses only the times of the packet
// and the settings in force; it shares no code with the computation of these times:
//
//		arrived ──── waits ────┬── is transmitted ──► departed ── latency, jitter ──► handed over
//		                     start
//
//	  - Wire: a packet starts when it has arrived and the packet before it has departed. Between start
//	    and departure the rates in force transmit exactly its bits. Less is Fast, more is Slow.
//	  - Delay: between departure and hand-over pass the latency in force at the departure, a jitter
//	    within the distribution's range, and the emulator's own lateness. Less is Early, more is Late.
//
// Both laws together imply that at most rate x time + one packet comes out in any interval of constant
// latency, and that the queue drains at the rate in force.
package account

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"skerry/internal/link"
)

// tolerance of both laws, in ns. Times are rounded to nanoseconds, and a packet is read up to 50 us before
// the time from which it counts (see dataplane/read.go).
const tolerance = int64(50 * time.Microsecond)

// maxSettings is the number of settings kept. A packet that departed under an older one is not checked.
const maxSettings = 32

// setting is a quality with the time from which it holds.
type setting struct {
	since     int64
	latency   int64
	low, high int64   // of the jitter, around the latency
	variance  float64 // bits per ns; 0 means no limit
	rate      float64 // overtaking packets occupy the wire without being checked
	reorders  bool    // packets that overtake occupy the wire unseen
}

// Timing holds the times of one packet on the link, in ns of one clock.
type Timing struct {
	Arrived, Departed int64
	Due, HandedOver   int64
	Bytes             int64
	// RemoteDue means that another machine decided when the packet is due.
	RemoteDue bool
}

// Recorder accounts for one direction. It is not safe for concurrent use.
type Recorder struct {
	settings [maxSettings]setting
	set      uint64 // number of settings; the last one is settings[(set-1) % maxSettings]

	departed int64 // when the last packet departed
	due      int64 // when it was due

	seen   link.Account
	delays [link.DelayBuckets]uint64
}

// New starts an account with the quality that holds at time now.
func New(now int64, q link.Quality) *Recorder {
	a := &Recorder{departed: math.MinInt64, due: math.MinInt64}
	a.addSetting(now, q)
	return a
}

// Set records that a quality holds from time now.
func (a *Recorder) Set(now int64, q link.Quality) {
	a.seen.Changes++
	a.addSetting(now, q)
}

func (a *Recorder) addSetting(now int64, q link.Quality) {
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

// settingAt returns the setting in force at a time and the number of its change, 0 for the initial
// setting. It returns nil if that setting is no longer kept.
func (a *Recorder) settingAt(time int64) (in *setting, change uint64) {
	for i := a.set; i > 0 && a.set-i < maxSettings; i-- {
		if s := &a.settings[(i-1)%maxSettings]; s.since <= time || i == 1 {
			return s, i - 1
		}
	}
	return nil, 0
}

// Drop records a packet that was dropped because the link is down.
func (a *Recorder) Drop() { a.seen.Confirmed = a.seen.Changes }

// Deliver checks a delivered packet.
func (a *Recorder) Deliver(w Timing) {
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

// checkWire checks the time on the wire against the rates in force, from the last rate back to the one
// in force at the start.
func (a *Recorder) checkWire(w Timing) (obeys bool) {
	start := max(w.Arrived, a.departed)
	left := float64(8 * w.Bytes) // bits not yet transmitted by the rates examined
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
			// Without a limit a packet departs when it starts, or when the limit is removed.
			return a.judgeWire(float64(since-until), reorders)
		}
		left -= float64(until-since) * s.rate
		until = since
		if since == start {
			return a.judgeWire(left/s.rate, reorders)
		}
	}
	return true // the packet started before the oldest setting
}

// judgeWire counts a breach. A packet was transmitted fast ns too early, or too late if fast is negative.
func (a *Recorder) judgeWire(fast float64, reorders bool) (obeys bool) {
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

// checkDelay checks the time from departure to hand-over against the latency.
func (a *Recorder) checkDelay(w Timing, s *setting) (obeys bool) {
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
	case spread > s.high+late+tolerance && w.Due > a.due: // otherwise it waits for the packet before it
		a.seen.Late.Add(time.Duration(spread - s.high - late))
		return false
	}
	return true
}

// Snapshot is a copy of an account that needs no allocation.
type Snapshot struct {
	seen   link.Account
	delays [link.DelayBuckets]uint64
}

// Copy fills a snapshot. waiting is the bytes that have not left the wire, flying the packets in flight.
func (a *Recorder) Copy(to *Snapshot, waiting int64, flying int) {
	to.seen, to.delays = a.seen, a.delays
	to.seen.Known, to.seen.Waiting, to.seen.Flying = true, waiting, int64(flying)
}

func (s *Snapshot) Account() link.Account {
	last := len(s.delays)
	for last > 0 && s.delays[last-1] == 0 {
		last--
	}
	got := s.seen
	got.Delays = slices.Clone(s.delays[:last])
	return got
}

// Buckets are those of HDR histograms: 1 us up to 16 us, then 16 per power of two, so that a value is known within
// 6 %. Values above a minute count as a minute.
const (
	sub     = 16
	subBits = 4
	octaves = 22
	buckets = sub * (octaves + 1)
)

// Histogram counts the lateness of packets in microseconds, without allocations and locks. The zero value is empty. One
// goroutine records; any goroutine may read.
type Histogram struct {
	counts [buckets]atomic.Uint64
	max    atomic.Int64 // ns
}

// Record counts one duration.
func (h *Histogram) Record(ns int64) {
	ns = max(ns, 0)
	h.counts[bucket(uint64(ns)/1000)].Add(1)
	if ns > h.max.Load() {
		h.max.Store(ns)
	}
}

// Add adds the counts of other. The caller must be the only recorder of h.
func (h *Histogram) Add(other *Histogram) {
	for i := range other.counts {
		h.counts[i].Add(other.counts[i].Load())
	}
	h.max.Store(max(h.max.Load(), other.max.Load()))
}

func bucket(us uint64) int {
	if us < sub {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	return min(sub*(shift+1)+int(us>>shift)-sub, buckets-1)
}

// upper returns the largest number of microseconds in bucket i.
func upper(i int) uint64 {
	if i < sub {
		return uint64(i)
	}
	shift := i/sub - 1
	return uint64(i%sub+sub+1)<<shift - 1
}

// Summary returns quantiles, zeros for an empty histogram.
func (h *Histogram) Summary() link.Lateness {
	var counts [buckets]uint64
	var total uint64
	for i := range counts {
		counts[i] = h.counts[i].Load()
		total += counts[i]
	}
	if total == 0 {
		return link.Lateness{Known: true}
	}
	most := time.Duration(h.max.Load())
	quantile := func(rank uint64) time.Duration {
		var seen uint64
		for i, n := range counts {
			if seen += n; seen >= rank {
				return min(most, time.Duration(upper(i)+1)*time.Microsecond)
			}
		}
		return most
	}
	return link.Lateness{
		Known: true,
		P50:   quantile(total - total/2),
		P99:   quantile(total - total/100),
		Max:   most,
	}
}
