package dataplane

import (
	"testing"
	"time"
)

// TestRestKeepsBelowTheKernelsLimit lets a plane be busy all the time it may and checks
// that no second has more than 95 % of it.
func TestRestKeepsBelowTheKernelsLimit(t *testing.T) {
	const second = int64(time.Second)
	const step = int64(100 * time.Microsecond)
	var r rest
	var rests []int64 // begins and ends, in turn
	r.begin(0)
	now := 3 * second // idle: no more credit than a burst comes of it
	r.addIdle(0, now)
	begin, rested := now, int64(0)
	for now < 10*second {
		now += step
		if owed := r.owed(now); owed > 0 {
			r.addIdle(now, now+owed)
			rests = append(rests, now, now+owed)
			now += owed
			rested += owed
		}
	}
	for from := begin; from < 9*second; from += second / 20 {
		busy := second
		for i := 0; i < len(rests); i += 2 {
			busy -= max(0, min(rests[i+1], from+second)-max(rests[i], from))
		}
		if busy > second*95/100 {
			t.Fatalf("busy for %v of the second from %v on", time.Duration(busy), time.Duration(from))
		}
	}
	if most := (now - begin) / 10; rested > most {
		t.Errorf("rested for %v, more than a tenth of the time", time.Duration(rested))
	}
}
