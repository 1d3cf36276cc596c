package link

import (
	"math/bits"
	"time"
)

// Account is what an engine observed on the packets of one direction, each held against the
// quality in force when it left the wire. All figures count from the creation of the link, so
// that the difference of two accounts describes the time between them. A super-packet counts
// as one.
type Account struct {
	// Known is false for an engine that does not see packets (netem); Waiting alone is set then.
	Known bool `json:"known,omitempty"`
	// Packets were delivered.
	Packets uint64 `json:"packets,omitempty"`
	// Delay sums the time from arrival to hand-over, Queued the part of it until the last bit
	// had left the wire.
	Delay  time.Duration `json:"delay_ns,omitempty"`
	Queued time.Duration `json:"queued_ns,omitempty"`
	// Delays is a histogram of the delay: DelayBucket(d) counts packets with the delay d.
	// Trailing zeros are left out.
	Delays []uint64 `json:"delays,omitempty"`
	// Spread sums the time from the wire to hand-over, less the latency: jitter and lateness.
	// Squares sums its squares, SetSquares the variances of the jitter that was set, in us².
	Spread     time.Duration `json:"spread_ns,omitempty"`
	Squares    float64       `json:"squares_us2,omitempty"`
	SetSquares float64       `json:"set_squares_us2,omitempty"`
	// Waiting bytes are in the queue or being transmitted, Flying packets are on their way; at
	// the moment of the account.
	Waiting int64 `json:"waiting_bytes,omitempty"`
	Flying  int64 `json:"flying_packets,omitempty"`
	// Changes counts the qualities that were set after the first one, Confirmed is the number
	// of the last one that a packet was observed to obey: one that left the wire while it was in
	// force and broke no law, or one that the link dropped because it was down.
	Changes   uint64 `json:"changes,omitempty"`
	Confirmed uint64 `json:"confirmed,omitempty"`
	// Laws that packets broke.
	Early Breach `json:"early,omitzero"` // handed over before latency and jitter allow
	Late  Breach `json:"late,omitzero"`  // handed over later than latency, jitter and the emulator's lateness explain
	Fast  Breach `json:"fast,omitzero"`  // left the wire before the rate allows
	Slow  Breach `json:"slow,omitzero"`  // left the wire after the rate had allowed it
}

// Breach counts packets that broke a law, and the most that one broke it by.
type Breach struct {
	Packets uint64        `json:"packets,omitempty"`
	Worst   time.Duration `json:"worst_ns,omitempty"`
}

// Add counts a packet.
func (b *Breach) Add(by time.Duration) {
	b.Packets++
	b.Worst = max(b.Worst, by)
}

// Buckets of Account.Delays: four to each power of two of microseconds.
const (
	delaySub     = 4
	DelayBuckets = delaySub * 26
)

// DelayBucket is the bucket of a delay. The last one has no upper bound.
func DelayBucket(d time.Duration) int {
	us := uint64(max(d, 0)) / 1000
	if us < delaySub {
		return int(us)
	}
	octave := bits.Len64(us) - 3 // us>>octave is 4 to 7
	return min(delaySub*(octave+1)+int(us>>octave)-delaySub, DelayBuckets-1)
}

// DelayBound is the upper bound of a bucket.
func DelayBound(bucket int) time.Duration {
	if bucket < delaySub {
		return time.Duration(bucket+1) * time.Microsecond
	}
	octave := bucket/delaySub - 1
	return time.Duration(uint64(bucket%delaySub+delaySub+1)<<octave) * time.Microsecond
}

// Sub is the account of the time after an earlier account. Waiting, Flying, Changes and
// Confirmed are those of the later account, and so is the worst of each breach.
func (a Account) Sub(earlier Account) Account {
	a.Packets -= earlier.Packets
	a.Delay -= earlier.Delay
	a.Queued -= earlier.Queued
	a.Spread -= earlier.Spread
	a.Squares -= earlier.Squares
	a.SetSquares -= earlier.SetSquares
	delays := make([]uint64, len(a.Delays))
	for i := range delays {
		delays[i] = a.Delays[i]
		if i < len(earlier.Delays) {
			delays[i] -= earlier.Delays[i]
		}
	}
	a.Delays = delays
	for _, b := range []struct{ now, before *Breach }{
		{&a.Early, &earlier.Early}, {&a.Late, &earlier.Late}, {&a.Fast, &earlier.Fast}, {&a.Slow, &earlier.Slow},
	} {
		b.now.Packets -= b.before.Packets
		if b.now.Packets == 0 {
			b.now.Worst = 0
		}
	}
	return a
}

// DelayQuantile is the delay that a share q of the packets did not exceed, rounded up to its
// bucket's bound; 0 without packets.
func (a Account) DelayQuantile(q float64) time.Duration {
	var total, seen uint64
	for _, n := range a.Delays {
		total += n
	}
	for i, n := range a.Delays {
		if seen += n; n > 0 && float64(seen) >= q*float64(total) {
			return DelayBound(i)
		}
	}
	return 0
}
