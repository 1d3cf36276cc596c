// Package linkcheck checks that links met their settings while a trial measured, from the emulator's account of every
// direction in every second.
//
//	link.Stats, a second ─► Second ─┬─► Row: directions.parquet
//	                                └─► Checker.Add ─► Checker.Result: fidelity.account
//
// The emulator compares each packet with the settings in force (link.Account). This package decides how many packets
// may break a law, and compares the distribution of jitter with its setting. It does no I/O.
package linkcheck

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"skerry/internal/link"
	"skerry/internal/record"
)

// Direction is one direction of a link.
type Direction struct{ Link, From, To string }

// Second is the activity of one direction in one second.
type Second struct {
	Direction
	T      int64         // seconds since the measurement began
	Length time.Duration // the time that the counters are of
	Set    link.Quality  // at its end
	// Counters cover this second only. Account.Changes is the number of changes in it; Late counts since the link was
	// created.
	Counters link.Counters
}

// CountersBetween returns the counters between two readings of a direction, with the changes between them.
func CountersBetween(before, after link.Counters) link.Counters {
	between := after.Sub(before)
	between.Account.Changes -= before.Account.Changes
	return between
}

// Idle reports whether nothing was carried, dropped or waiting.
func (s Second) Idle() bool {
	c := s.Counters
	return c.Packets+c.DroppedQueue+c.DroppedLoss == 0 && c.Account.Packets == 0 && c.Account.Waiting == 0
}

// Row converts the second to a row of directions.parquet.
func (s Second) Row() record.DirectionSecond {
	c, a := s.Counters, s.Counters.Account
	r := record.DirectionSecond{
		T: s.T, Link: s.Link, From: s.From, To: s.To,
		Packets: int64(c.Packets), Bytes: int64(c.Bytes), DroppedQueue: int64(c.DroppedQueue), DroppedLoss: int64(c.DroppedLoss),
		SetLatency: ms(s.Set.Latency), SetJitter: ms(s.Set.Jitter), SetBPS: s.Set.Bandwidth, SetDown: s.Set.Down,
		Observed: a.Known, Waiting: a.Waiting, Flying: a.Flying, Changes: int64(a.Changes),
		Early: int64(a.Early.Packets), Late: int64(a.Late.Packets), Fast: int64(a.Fast.Packets), Slow: int64(a.Slow.Packets),
	}
	if a.Packets == 0 {
		return r
	}
	n := float64(a.Packets)
	r.DelayMean, r.Queued, r.SpreadMean = ms(a.Delay)/n, ms(a.Queued)/n, ms(a.Spread)/n
	r.DelayP50, r.DelayP99 = ms(a.DelayQuantile(0.5)), ms(a.DelayQuantile(0.99))
	r.SpreadSD = math.Sqrt(max(0, a.Squares/1e6/n-r.SpreadMean*r.SpreadMean))
	return r
}

// Checker accumulates the seconds of a measurement. The zero value is ready.
type Checker struct {
	packets    uint64
	unobserved bool
	ways       map[Direction]*directionState
	changes    record.Changes
}

type directionState struct {
	packets uint64
	laws    [4]tally
	jitter  jitter
}

type tally struct {
	packets uint64
	worst   record.LawViolation // second
	times   int64               // seconds beyond the tolerance
}

// Add adds a second of a direction.
func (c *Checker) Add(s Second) {
	a := s.Counters.Account
	switch {
	case s.Idle() && a.Changes == 0:
		return
	case !a.Known:
		c.unobserved = true
		return
	}
	if c.ways == nil {
		c.ways = map[Direction]*directionState{}
	}
	w := c.ways[s.Direction]
	if w == nil {
		w = &directionState{}
		c.ways[s.Direction] = w
	}
	c.packets += a.Packets
	w.packets += a.Packets
	for i, law := range laws(a) {
		w.laws[i].add(s, law)
	}
	w.jitter.add(s)
}

// AddChange adds the observation after a change of links.
func (c *Checker) AddChange(o record.Observed) { c.changes.Add(o) }

type law struct {
	name string
	link.Breach
}

func laws(a link.Account) [4]law {
	return [4]law{{record.LawEarly, a.Early}, {record.LawLate, a.Late}, {record.LawFast, a.Fast}, {record.LawSlow, a.Slow}}
}

// Tolerances. If the machine holds up a thread of the emulator between two readings of its clock, the packets of that
// moment are misdated (3 of 160,000 were seen), so a few violations prove nothing about the link. A wrong setting
// affects nearly every packet while it lasts: ten in a second are a late change. Links with few packets per second are
// judged over the whole measurement, where such moments add up, so a larger share may break a law.
const (
	minPackets  = 10
	secondShare = 0.001
	wholeShare  = 0.01
)

func exceedsTolerance(broke, of uint64) bool { return exceedsShare(broke, of, secondShare) }

func exceedsShare(broke, of uint64, share float64) bool {
	return broke >= minPackets && float64(broke) > share*float64(of)
}

func (y *tally) add(s Second, l law) {
	if l.Packets == 0 {
		return
	}
	y.packets += l.Packets
	of := s.Counters.Account.Packets
	b := record.LawViolation{
		Law: l.name, Link: s.Link, From: s.From, To: s.To, T: s.T,
		Packets: int64(l.Packets), Of: int64(of), WorstMS: ms(l.Worst), Beyond: exceedsTolerance(l.Packets, of),
	}
	if b.Beyond {
		y.times++
	}
	if y.worst.Law == "" || compareViolations(b, y.worst) > 0 {
		y.worst = b
	}
}

// compareViolations orders violations: beyond the tolerance, then by packets times worst deviation.
func compareViolations(a, b record.LawViolation) int {
	switch {
	case a.Beyond != b.Beyond && a.Beyond:
		return 1
	case a.Beyond != b.Beyond:
		return -1
	}
	return cmp.Compare(float64(a.Packets)*a.WorstMS, float64(b.Packets)*b.WorstMS)
}

// Result summarises the measurement.
func (c *Checker) Result() record.LinkAccount {
	if len(c.ways) == 0 && c.unobserved {
		return record.LinkAccount{NotMeasured: "the links' engine does not see packets"}
	}
	r := record.LinkAccount{Packets: int64(c.packets)}
	ways := slices.SortedFunc(maps.Keys(c.ways), func(a, b Direction) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.From, b.From))
	})
	for _, w := range c.ways {
		if w.packets > 0 {
			r.Directions++
		}
	}
	for i := range 4 {
		var all *record.LawViolation
		for _, k := range ways {
			all = c.ways[k].laws[i].mergeInto(all, c.ways[k].packets)
		}
		if all != nil {
			r.Broken = append(r.Broken, *all)
		}
	}
	farthest := 0.0
	for _, k := range ways {
		if j := c.ways[k].jitter.result(k); j != nil && (r.Jitter == nil || jitterDeviation(*j) > farthest) {
			r.Jitter, farthest = j, jitterDeviation(*j)
		}
	}
	if c.changes.Directions > 0 {
		changes := c.changes
		r.Changes = &changes
	}
	return r
}

func (y tally) mergeInto(all *record.LawViolation, of uint64) *record.LawViolation {
	if y.packets == 0 {
		return all
	}
	b := y.worst
	if !b.Beyond && exceedsShare(y.packets, of, wholeShare) {
		b.T, b.Packets, b.Of, b.Beyond = -1, int64(y.packets), int64(of), true
	}
	b.Times, b.Total = y.times, int64(y.packets)
	if all == nil {
		return &b
	}
	b.Times += all.Times
	b.Total += all.Total
	if compareViolations(b, *all) > 0 {
		return &b
	}
	all.Times, all.Total = b.Times, b.Total
	return all
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ChangeIgnored reports whether a change had no effect, judged by the number of packets that crossed after it.
func ChangeIgnored(u record.Unconfirmed) bool { return u.Packets >= minPackets }
