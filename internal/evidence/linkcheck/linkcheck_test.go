package linkcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
	"skerry/internal/record"
)

var pune = Direction{"Pune~Seoul", "Pune", "Seoul"}

// second is one second of an account with a number of packets.
func second(t int64, packets uint64, change func(*link.Account), set ...link.Quality) Second {
	s := Second{Direction: pune, T: t, Length: time.Second, Counters: link.Counters{Packets: packets,
		Account: link.Account{Known: true, Packets: packets}}}
	if change != nil {
		change(&s.Counters.Account)
	}
	for _, q := range set {
		s.Set = q
	}
	return s
}

func breach(packets uint64, worst time.Duration) link.Breach {
	return link.Breach{Packets: packets, Worst: worst}
}

func TestLaws(t *testing.T) {
	slow := func(packets uint64, worst time.Duration) func(*link.Account) {
		return func(a *link.Account) { a.Slow = breach(packets, worst) }
	}
	tests := map[string]struct {
		seconds []Second
		want    *record.LawViolation
	}{
		"all obeyed": {[]Second{second(0, 1000, nil), second(1, 1000, nil)}, nil},
		// The queue of a link that drains at the rate at which packets entered (issue 47, fault 1).
		"a late change of the rate": {[]Second{second(11, 100, nil), second(12, 120, slow(86, 6900*time.Millisecond)), second(13, 100, nil)},
			&record.LawViolation{Law: "slow", T: 12, Packets: 86, Of: 120, WorstMS: 6900, Beyond: true, Times: 1, Total: 86}},
		"a short stall of the machine": {[]Second{second(0, 10_000, slow(9, 20*time.Millisecond))},
			&record.LawViolation{Law: "slow", Packets: 9, Of: 10_000, WorstMS: 20, Total: 9}},
		"a small share of many packets": {[]Second{second(0, 100_000, slow(90, time.Millisecond))},
			&record.LawViolation{Law: "slow", Packets: 90, Of: 100_000, WorstMS: 1, Total: 90}},
		"a large share of many packets": {[]Second{second(0, 100_000, slow(120, time.Millisecond))},
			&record.LawViolation{Law: "slow", Packets: 120, Of: 100_000, WorstMS: 1, Beyond: true, Times: 1, Total: 120}},
		"few packets a second": {[]Second{second(0, 4, slow(4, time.Second)), second(1, 4, slow(4, time.Second)),
			second(2, 4, slow(4, time.Second))},
			&record.LawViolation{Law: "slow", T: -1, Packets: 12, Of: 12, WorstMS: 1000, Beyond: true, Total: 12}},
		"two short stalls of the machine": {[]Second{second(0, 5000, slow(6, time.Millisecond)), second(1, 5000, slow(7, time.Millisecond))},
			&record.LawViolation{Law: "slow", T: 1, Packets: 7, Of: 5000, WorstMS: 1, Total: 13}},
		"the worse of two": {[]Second{second(0, 100, slow(50, time.Millisecond)), second(1, 100, slow(20, time.Second))},
			&record.LawViolation{Law: "slow", T: 1, Packets: 20, Of: 100, WorstMS: 1000, Beyond: true, Times: 2, Total: 70}},
		"large excess before many packets": {[]Second{second(0, 20, slow(11, time.Millisecond)), second(1, 100_000, slow(99, time.Second))},
			&record.LawViolation{Law: "slow", Packets: 11, Of: 20, WorstMS: 1, Beyond: true, Times: 1, Total: 110}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var c Checker
			for _, s := range tt.seconds {
				c.Add(s)
			}
			got := c.Result()
			var want []record.LawViolation
			if tt.want != nil {
				tt.want.Link, tt.want.From, tt.want.To = "Pune~Seoul", "Pune", "Seoul"
				want = []record.LawViolation{*tt.want}
			}
			if diff := cmp.Diff(want, got.Broken); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each law reports the worst direction.
func TestLawsOfSeveralDirections(t *testing.T) {
	var c Checker
	back := second(3, 100, func(a *link.Account) { a.Fast, a.Early = breach(60, time.Second), breach(50, time.Millisecond) })
	back.Direction = Direction{"Pune~Seoul", "Seoul", "Pune"}
	c.Add(back)
	c.Add(second(4, 100, func(a *link.Account) { a.Early, a.Late = breach(80, time.Millisecond), breach(30, time.Second) }))
	c.Add(second(5, 0, func(a *link.Account) { a.Changes = 1 }))
	got := c.Result()
	if got.Directions != 2 || got.Packets != 200 || len(got.Broken) != 3 {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []record.LawViolation{{Law: "early", To: "Seoul", Total: 130, Times: 2},
		{Law: "late", To: "Seoul", Total: 30, Times: 1}, {Law: "fast", To: "Pune", Total: 60, Times: 1}} {
		if b := got.Broken[i]; b.Law != want.Law || b.To != want.To || b.Total != want.Total || b.Times != want.Times {
			t.Errorf("got %+v, want %+v", b, want)
		}
	}
}

func TestNotMeasured(t *testing.T) {
	var c Checker
	c.Add(Second{Direction: pune, Counters: link.Counters{Packets: 10, Bytes: 1000}})
	if got := c.Result(); got.NotMeasured == "" {
		t.Errorf("an engine that does not see packets: %+v", got)
	}
	var idle Checker
	idle.Add(Second{Direction: pune})
	if got := idle.Result(); got.NotMeasured != "" || got.Directions != 0 {
		t.Errorf("no packets: %+v", got)
	}
}

func TestRow(t *testing.T) {
	before := link.Counters{Packets: 100, Bytes: 10_000, Account: link.Account{Known: true, Packets: 100, Delay: time.Second, Changes: 2,
		Squares: 5}}
	after := link.Counters{Packets: 104, Bytes: 11_000, DroppedQueue: 3, Account: link.Account{
		Known: true, Packets: 104, Delay: time.Second + 48*time.Millisecond, Queued: 8 * time.Millisecond, Spread: 4 * time.Millisecond,
		Squares: 8_000_005, Delays: make([]uint64,
			link.DelayBucket(12*time.Millisecond)+1), Waiting: 1500, Flying: 2, Changes: 3, Late: breach(1, time.Second),
	}}
	after.Account.Delays[link.DelayBucket(12*time.Millisecond)] = 4
	s := Second{Direction: pune, T: 7, Set: link.Quality{Latency: 10 * time.Millisecond, Jitter: time.Millisecond, Bandwidth: 1e6,
		Down: true}, Counters: CountersBetween(before, after)}
	bound := ms(link.DelayBound(link.DelayBucket(12 * time.Millisecond)))
	want := record.DirectionSecond{
		T: 7, Link: "Pune~Seoul", From: "Pune", To: "Seoul", Packets: 4, Bytes: 1000, DroppedQueue: 3,
		SetLatency: 10, SetJitter: 1, SetBPS: 1e6, SetDown: true, Observed: true, Waiting: 1500, Flying: 2,
		DelayMean: 12, DelayP50: bound, DelayP99: bound, Queued: 2, SpreadMean: 1, SpreadSD: 1, Changes: 1, Late: 1,
	}
	if diff := cmp.Diff(want, s.Row()); diff != "" {
		t.Error(diff)
	}
	if (Second{Direction: pune, Counters: CountersBetween(after, after)}).Idle() {
		t.Error("a direction with waiting bytes is idle")
	}
}
