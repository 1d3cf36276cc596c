package dataplane

import "time"

// Linux stops a real-time thread that used 95 % of a second (sched_rt_runtime_us) for the rest of that
// second. Every link would stop for 50 ms. A saturated plane rests for many short times instead.
const (
	duty      = 0.93
	restShare = 1 - duty // rest owed per busy time
	burst     = int64(10 * time.Millisecond)
	shortRest = int64(200 * time.Microsecond)
)

// rest accounts for busy and idle time. credit is saved idle time.
type rest struct {
	credit float64 // ns
	woke   int64
}

func (r *rest) begin(now int64) { r.woke = now }

// owed returns how long to rest, or 0.
func (r *rest) owed(now int64) int64 {
	// The remainder of a longer time was used by the host or by the kernel's limit.
	r.credit -= float64(min(now-r.woke, burst)) * restShare
	r.woke = now
	if owed := int64(-r.credit / duty); owed > shortRest {
		return owed
	}
	return 0
}

func (r *rest) addIdle(from, to int64) {
	r.credit = min(r.credit+float64(to-from)*duty, float64(burst)*restShare)
	r.woke = to
}
