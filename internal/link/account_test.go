package link

import (
	"math"
	"testing"
	"time"
)

func TestDelayBuckets(t *testing.T) {
	for d := time.Duration(0); d < 30*time.Second; d += 7*time.Microsecond + d/50 {
		i := DelayBucket(d)
		if i < 0 || i >= DelayBuckets || DelayBound(i) <= d || i > 0 && DelayBound(i-1) > d {
			t.Fatalf("%v is in bucket %d, which ends at %v", d, i, DelayBound(i))
		}
	}
	if i := DelayBucket(math.MaxInt64); i != DelayBuckets-1 {
		t.Errorf("the largest delay is in bucket %d, want the last one", i)
	}
}

func TestAccountSub(t *testing.T) {
	before := Account{Known: true, Packets: 3, Delay: 30, Delays: []uint64{1, 2}, Slow: Breach{1, time.Second}}
	after := Account{Known: true, Packets: 5, Delay: 70, Delays: []uint64{1, 2, 0, 2}, Waiting: 9,
		Slow: Breach{1, time.Second}, Early: Breach{2, 7}}
	got := after.Sub(before)
	if got.Packets != 2 || got.Delay != 40 || got.Waiting != 9 || got.Slow != (Breach{}) || got.Early != (Breach{2, 7}) {
		t.Errorf("got difference %+v", got)
	}
	if q := got.DelayQuantile(0.5); q != 4*time.Microsecond {
		t.Errorf("the median delay is %v, want 4us", q)
	}
	if after.Delays[0] != 1 || before.Delays[0] != 1 {
		t.Error("the subtraction changed its operands")
	}
}
