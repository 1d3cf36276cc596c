package link

import (
	"math/bits"
	"time"
)

// Account compares the packets of one direction with the quality in force when each packet left the wire. All
// figures count from the creation of the link, so the difference of two accounts describes the time between them.
// A super-packet counts as one packet.
type Account struct {
	// Known is false for netem, which does not observe packets. Only Waiting is set then.
	Known   bool   `json:"known,omitempty"`
	Packets uint64 `json:"packets,omitempty"`
	// Delay is the sum of the times from arrival to delivery, Queued the part until the last bit left the wire.
	Delay  time.Duration `json:"delay_ns,omitempty"`
	Queued time.Duration `json:"queued_ns,omitempty"`
	// Delays is a histogram of the delays, indexed by DelayBucket, without trailing zeros.
	Delays []uint64 `json:"delays,omitempty"`
	// Spread is the sum of the times from the wire to delivery minus the latency: jitter and lateness. Squares is
	// the sum of its squares, SetSquares the sum of the configured variances, in us².
	Spread     time.Duration `json:"spread_ns,omitempty"`
	Squares    float64       `json:"squares_us2,omitempty"`
	SetSquares float64       `json:"set_squares_us2,omitempty"`
	// Waiting is the number of bytes in the queue or on the wire, Flying the number of packets in flight, at
	// the time of the account.
	Waiting int64 `json:"waiting_bytes,omitempty"`
	Flying  int64 `json:"flying_packets,omitempty"`
	// Changes is the number of changes of the quality. Confirmed is the number of the last change that a packet
	// confirmed: the packet left the wire under that quality and broke no law, or was dropped by a down link.
	Changes   uint64 `json:"changes,omitempty"`
	Confirmed uint64 `json:"confirmed,omitempty"`
	// Packets that broke a law:
	Early Breach `json:"early,omitzero"` // delivered before latency and jitter permit
	Late  Breach `json:"late,omitzero"`  // delivered later than latency, jitter and the emulator's lateness explain
	Fast  Breach `json:"fast,omitzero"`  // left the wire before the rate permits
	Slow  Breach `json:"slow,omitzero"`  // left the wire after the rate permitted it
}

// Breach counts packets that broke a law. Worst is the largest violation.
type Breach struct {
	Packets uint64        `json:"packets,omitempty"`
	Worst   time.Duration `json:"worst_ns,omitempty"`
}

func (b *Breach) Add(by time.Duration) {
	b.Packets++
	b.Worst = max(b.Worst, by)
}

// Buckets of Account.Delays: four per power of two of microseconds.
const (
	delaySub     = 4
	DelayBuckets = delaySub * 26
)

// DelayBucket returns the bucket of a delay. The last bucket has no upper bound.
func DelayBucket(d time.Duration) int {
	us := uint64(max(d, 0)) / 1000
	if us < delaySub {
		return int(us)
	}
	octave := bits.Len64(us) - 3 // us>>octave is 4 to 7
	return min(delaySub*(octave+1)+int(us>>octave)-delaySub, DelayBuckets-1)
}

// DelayBound returns the upper bound of a bucket.
func DelayBound(bucket int) time.Duration {
	if bucket < delaySub {
		return time.Duration(bucket+1) * time.Microsecond
	}
	octave := bucket/delaySub - 1
	return time.Duration(uint64(bucket%delaySub+delaySub+1)<<octave) * time.Microsecond
}

// Sub returns the account of the time since an earlier account. Waiting, Flying, Changes, Confirmed and the worst of
// each breach are those of a.
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

// DelayQuantile returns the q-quantile of the delays, rounded up to the bound of its bucket; 0 without packets.
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
