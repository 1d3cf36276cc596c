package dataplane

import "time"

// A real-time thread may use 95 % of a core in each second; then Linux stops it for the
// rest of that second (sched_rt_runtime_us), and every link stands still for 50 ms. A
// saturated plane takes many short rests instead.
const (
	duty      = 0.93
	restShare = 1 - duty // share of busy time that has to be rested
	burst     = int64(10 * time.Millisecond)
	shortRest = int64(200 * time.Microsecond)
)

// rest keeps account of busy and idle time: credit is idle time in hand.
type rest struct {
	credit float64 // ns
	woke   int64
}

func (r *rest) begin(now int64) { r.woke = now }

// owed returns how long to rest, at a time; 0 for not at all.
func (r *rest) owed(now int64) int64 {
	// Of a longer time, others had a part: the machine's host, or the kernel's own limit.
	r.credit -= float64(min(now-r.woke, burst)) * restShare
	r.woke = now
	if owed := int64(-r.credit / duty); owed > shortRest {
		return owed
	}
	return 0
}

// addIdle records idleness.
func (r *rest) addIdle(from, to int64) {
	r.credit = min(r.credit+float64(to-from)*duty, float64(burst)*restShare)
	r.woke = to
}
