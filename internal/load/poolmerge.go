package load

import "time"

// poolOperation is what operations of a pool are called among those of all.
func poolOperation(name, operation string) string {
	if name == "" {
		return operation
	}
	return name + "." + operation
}

// withPrefix returns totals whose operations are called by a pool.
func (t Totals) withPrefix(pool string) Totals {
	if pool == "" {
		return t
	}
	operations := make(map[string]*Operation, len(t.Operations))
	for name, o := range t.Operations {
		operations[poolOperation(pool, name)] = o
	}
	t.Operations = operations
	errors := make([]ErrorCount, len(t.Errors))
	for i, e := range t.Errors {
		e.Operation = poolOperation(pool, e.Operation)
		errors[i] = e
	}
	t.Errors = errors
	return t
}

// mergeIntervals makes one interval of those of all pools.
func mergeIntervals(pools []PoolInterval) Interval {
	if len(pools) == 1 && pools[0].Name == "" {
		i := pools[0].Interval
		i.Pools = pools
		return i
	}
	first, end := pools[0].Start, pools[0].Start
	for _, p := range pools {
		if p.Start.Before(first) {
			first = p.Start
		}
		if at := p.Start.Add(p.Length); at.After(end) {
			end = at
		}
	}
	// A rate is by the length that pools drove for, not by how far apart they began.
	all := Interval{T: pools[0].T, Start: first, Pools: pools}
	for _, p := range pools {
		all.Length = max(all.Length, p.Length)
		all.InFlight += p.InFlight
		all.Writes = orShifted(all.Writes, p.Writes, int(p.Start.Sub(first)/WriteSlot))
		all.Totals.Merge(p.Totals.withPrefix(p.Name))
	}
	return all
}

// orShifted adds bits to those that begin so many slots earlier.
func orShifted(into, bits []uint64, by int) []uint64 {
	for i := range 64 * len(bits) {
		if bits[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		at := i + by
		for len(into) <= at/64 {
			into = append(into, 0)
		}
		into[at/64] |= 1 << (at % 64)
	}
	return into
}

// mergeResults makes one result of those of all pools. What is measured takes from when the first began
// until the last ended to send.
func mergeResults(pools []PoolResult) Result {
	if len(pools) == 1 && pools[0].Name == "" {
		r := pools[0].Result
		r.Pools = pools
		return r
	}
	all := Result{Spec: pools[0].Spec, Stopped: StoppedAsked, Pools: pools}
	for _, p := range pools {
		if all.Started.IsZero() || p.Started.Before(all.Started) {
			all.Started = p.Started
		}
		if all.Stopped == StoppedAsked && p.Stopped != "" {
			all.Stopped = p.Stopped // what ended the first one stopped the others
		}
		all.Warmup, all.Drain = max(all.Warmup, p.Warmup), max(all.Drain, p.Drain)
		all.Stuck += p.Stuck
		all.Cores = max(all.Cores, p.Cores)
		for _, w := range p.Warnings {
			all.Warnings = append(all.Warnings, p.Name+": "+w)
		}
		if p.Audited != nil {
			all.Audited = p.Audited
		}
		all.Totals.Merge(p.Totals.withPrefix(p.Name))
	}
	var end time.Time
	for _, p := range pools {
		if at := p.Started.Add(p.Duration); at.After(end) {
			end = at
		}
	}
	all.Duration = end.Sub(all.Started)
	return all
}
