package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// Pool is one of several simultaneous drives: a workload with its own clients, driven by its own
// process on a node.
type Pool struct {
	Name  string // prefix of its operations; "" for a single pool
	Node  host.Host
	Agent AgentSpec
}

// Pools runs drives that start together and end together:
//
//	pool 1  │ opens clients ···· │ warm-up ·· │ measures ───┐ ended
//	pool 2  │ opens clients      │ warm-up    │ measures ───┤ stopped, since pool 1 has ended
//	                           gate         gate
//
// Dots mark a wait for the other pools. The intervals of the same second are merged into one, which
// lists them in Interval.Pools. A single pool has no gates, and its intervals are those of its
// session.
type Pools struct {
	names     []string
	sessions  []*Session
	began     chan time.Time
	intervals chan Interval
	done      chan struct{} // closed when result and err are final
	result    Result
	err       error
}

// PoolInterval is an interval of one pool, PoolResult the result of one pool.
type (
	PoolInterval struct {
		Name string
		Interval
	}
	PoolResult struct {
		Name string
		Result
	}
)

// StartPools starts exe ("agent load") for each pool. The end of ctx has the same effect as Stop.
func StartPools(ctx context.Context, exe string, pools []Pool) (*Pools, error) {
	p := &Pools{began: make(chan time.Time, 1), intervals: make(chan Interval, sessionBuffer), done: make(chan struct{})}
	for _, x := range pools {
		x.Agent.Gated = len(pools) > 1
		s, err := StartAgent(ctx, x.Node, exe, x.Agent)
		if err != nil {
			p.Stop()
			for _, s := range p.sessions {
				_, _ = s.Wait() // StartPools returns the first error only
			}
			return nil, poolError(x.Name, err)
		}
		p.names, p.sessions = append(p.names, x.Name), append(p.sessions, s)
	}
	go p.run()
	return p, nil
}

// Began delivers the start of the measurement, once all pools measure.
func (p *Pools) Began() <-chan time.Time { return p.began }

// Intervals delivers one interval a second and is closed at the end.
func (p *Pools) Intervals() <-chan Interval { return p.intervals }

// Stop ends all drivers early. Wait returns the result.
func (p *Pools) Stop() {
	for _, s := range p.sessions {
		s.Stop()
	}
}

// Wait waits for all drivers and returns the merged result. Operation names have the pool as a
// prefix, and Result.Pools lists the pools. Errors are those of Session.Wait.
func (p *Pools) Wait() (Result, error) {
	<-p.done
	return p.result, p.err
}

func (p *Pools) run() {
	defer close(p.done)
	var beside sync.WaitGroup
	beside.Go(p.openGates)
	p.mergeSessions()
	beside.Wait()
	var errs []error
	var results []PoolResult
	for i, s := range p.sessions {
		r, err := s.Wait()
		results = append(results, PoolResult{p.names[i], r})
		errs = append(errs, poolError(p.names[i], err))
	}
	p.result, p.err = mergeResults(results), errors.Join(errs...)
}

// openGates opens the gates when all pools have reached them, and sends the time at which the last
// pool began to measure. If a pool ends earlier, all pools are stopped.
func (p *Pools) openGates() {
	for range gates {
		if len(p.sessions) == 1 {
			break
		}
		for _, s := range p.sessions {
			select {
			case <-s.ready:
			case <-s.done:
				p.Stop()
				return
			}
		}
		for _, s := range p.sessions {
			s.sendCommand(goCommand)
		}
	}
	var last time.Time
	for _, s := range p.sessions {
		select {
		case at := <-s.Began():
			if at.After(last) {
				last = at
			}
		case <-s.done:
			select { // if anything was measured, Began was sent before the end
			case last = <-s.Began():
			default:
				p.Stop()
				return
			}
		}
	}
	p.began <- last
}

// mergeSessions merges the intervals of a second as soon as every running pool has passed it. The
// end of one pool stops the others.
func (p *Pools) mergeSessions() {
	defer close(p.intervals)
	waiting := make([][]Interval, len(p.sessions))
	ended := make([]bool, len(p.sessions))
	for i := range p.sessions {
		p.receiveInterval(i, waiting, ended)
	}
	for {
		t, any := int64(0), false
		for i := range waiting {
			if len(waiting[i]) > 0 && (!any || waiting[i][0].T < t) {
				t, any = waiting[i][0].T, true
			}
		}
		if !any {
			return
		}
		var same []PoolInterval
		for i := range waiting {
			if len(waiting[i]) > 0 && waiting[i][0].T == t {
				same = append(same, PoolInterval{p.names[i], waiting[i][0]})
				waiting[i] = waiting[i][1:]
				p.receiveInterval(i, waiting, ended)
			}
		}
		p.intervals <- mergeIntervals(same)
	}
}

func (p *Pools) receiveInterval(i int, waiting [][]Interval, ended []bool) {
	if ended[i] || len(waiting[i]) > 0 {
		return
	}
	next, ok := <-p.sessions[i].Intervals()
	if ok {
		waiting[i] = append(waiting[i], next)
		return
	}
	ended[i] = true
	p.Stop()
}

func poolError(name string, err error) error {
	if err == nil || name == "" {
		return err
	}
	return fmt.Errorf("workload %s: %w", name, err)
}

func poolOperation(name, operation string) string {
	if name == "" {
		return operation
	}
	return name + "." + operation
}

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
	// Rates use the time that pools drove, not the time between their starts.
	all := Interval{T: pools[0].T, Start: first, Pools: pools}
	for _, p := range pools {
		all.Length = max(all.Length, p.Length)
		all.InFlight += p.InFlight
		all.Writes = orShifted(all.Writes, p.Writes, int(p.Start.Sub(first)/record.WriteSlot))
		all.Totals.Merge(p.Totals.withPrefix(p.Name))
	}
	return all
}

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

// mergeResults merges the results of all pools. The duration is from the first start to the last
// end.
func mergeResults(pools []PoolResult) Result {
	if len(pools) == 1 && pools[0].Name == "" {
		r := pools[0].Result
		r.Pools = pools
		return r
	}
	all := Result{Spec: pools[0].Spec, Stopped: stoppedAsked, Pools: pools}
	for _, p := range pools {
		if all.Started.IsZero() || p.Started.Before(all.Started) {
			all.Started = p.Started
		}
		if all.Stopped == stoppedAsked && p.Stopped != "" {
			all.Stopped = p.Stopped // the first pool to end stopped the others
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
