package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/load/ycsb"
)

type driver struct {
	spec     Spec
	base     time.Time // zero of all times given as durations
	valueCtx context.Context
	source   *ycsb.Source
	shards   []*shard
	// workers excludes abandoned ones.
	workers []*worker
	emit    func(Interval)

	audit        *driveAudit         // nil if the drive has no audit
	disturbances *disturbanceTracker // of the current segment
	fieldNames   []string

	cpu     time.Duration // CPU time of the process at the last interval
	retries int64         // retries of the clients at the last interval
	stuck   int64
}

const (
	// maxShards bounds the memory of recorders. More workers share them.
	maxShards     = 64
	parallelOpens = 16
	// watchdogPeriod is how late an operation's timeout can fire.
	watchdogPeriod = 5 * time.Millisecond
	// leadTime lets workers start before the first arrival is due.
	leadTime = 10 * time.Millisecond
	// stuckAfter is the grace period of a client after its operation's deadline.
	stuckAfter = 2 * time.Second
)

func newDriver(ctx context.Context, spec Spec, onSecond func(Interval)) *driver {
	if onSecond == nil {
		onSecond = func(Interval) {}
	}
	return &driver{
		spec: spec, base: time.Now(), valueCtx: context.WithoutCancel(ctx),
		source: ycsb.NewSource(spec.Workload, spec.Seed), emit: onSecond,
		fieldNames: spec.Workload.FieldNames(),
	}
}

// now is the driver's clock. It is monotonic and costs half as much as time.Now.
func (d *driver) now() time.Duration { return time.Since(d.base) }

func (d *driver) open(ctx context.Context, open OpenClient) error {
	d.workers = make([]*worker, d.spec.workers())
	for range min(len(d.workers), maxShards) {
		d.shards = append(d.shards, newShard())
	}
	if err := d.openAudit(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelOpens)
	for i := range d.workers {
		w := &worker{d: d, number: i, gen: d.source.NewGenerator(), shard: d.shards[i%len(d.shards)]}
		if d.audit != nil && d.audit.log != nil {
			w.audit = d.audit.log.Writer(i)
		}
		w.ctx.Store(newOpContext(d.valueCtx, d.base))
		d.workers[i] = w
		group.Go(func() (err error) {
			if d.spec.Target > 0 {
				if w.waker, err = newWaker(); err != nil {
					return err
				}
			}
			client, err := open(ctx)
			if err != nil { // client can be a nil pointer in a non-nil interface
				return fmt.Errorf("open client %d of %d: %w", i+1, len(d.workers), err)
			}
			w.client = client
			if d.spec.Phase == PhaseLoad && d.spec.Batch > 1 && d.spec.Target == 0 {
				w.bulk, _ = w.client.(BulkClient)
			}
			return w.openTree()
		})
	}
	if err := group.Wait(); err != nil {
		return errors.Join(err, d.close())
	}
	d.cpu = processCPU()
	return nil
}

func (d *driver) close() error {
	var errs []error
	for _, w := range d.workers {
		errs = append(errs, w.close())
	}
	d.workers = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close clients: %w", err)
	}
	return nil
}

// watch expires operations that exceed their timeout, until done is closed.
func (d *driver) watch(workers []*worker, done <-chan struct{}) {
	t := time.NewTicker(watchdogPeriod)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			now := d.now()
			for _, w := range workers {
				w.ctx.Load().expire(now)
			}
		}
	}
}

// newSegment returns a segment that starts at once, or after leadTime if it is paced.
func (d *driver) newSegment(first uint64, operations int64, length time.Duration, arrivals uint64) *segment {
	g := &segment{
		load: d.spec.Phase == PhaseLoad, pace: newPace(d.spec, arrivals), paced: d.spec.Target > 0, first: first, operations: operations,
		skip: d.spec.AfterStall == Skip, giveUp: d.spec.GiveUp, now: d.now, stopped: make(chan struct{}),
	}
	if d.spec.Arrival == Closed {
		g.tolerance = stallAfter
	}
	g.start = d.now()
	if d.spec.Target > 0 {
		g.start += leadTime
	}
	if length > 0 {
		g.end = g.start + length
	}
	return g
}

// run drives a segment until no operation is in flight, and returns the time of that. Its intervals
// are numbered from t to at most last.
func (d *driver) run(ctx context.Context, g *segment, t, last int64) (time.Duration, error) {
	probe, err := newWaker()
	if err != nil {
		return 0, err
	}
	defer probe.close()
	defer context.AfterFunc(ctx, func() { g.stop(stoppedAsked) })()
	done := make(chan struct{})
	var helpers sync.WaitGroup
	had, err := newStealMeter()
	if err != nil {
		return 0, err
	}
	defer had.close()
	d.disturbances = newDisturbanceTracker(d.shards, had.measure, d.now())
	helpers.Go(func() { d.watch(d.workers, done) })
	helpers.Go(func() { d.probeLateness(probe, !g.paced) })

	returned := make(chan *worker, len(d.workers))
	away := make(map[*worker]bool, len(d.workers))
	for _, w := range d.workers {
		away[w] = true
		// Every worker gets its first operation before any worker runs. Otherwise, on a busy
		// machine, one of two workers could start alone, send the first operation, take the second
		// one late and drop it.
		first := g.pace.next()
		go func() { // collect waits for returned
			w.run(g, first)
			returned <- w
		}()
	}
	ended := d.collect(g, away, returned, t, last)
	close(done)
	err = probe.interrupt()
	helpers.Wait()
	return ended, err
}

// probeLateness samples disturbances until the waker is interrupted. With late set, it also records
// how late it woke up, for drives without due times.
func (d *driver) probeLateness(w *waker, late bool) {
	for next := d.now() + sampleInterval; ; next += sampleInterval {
		next = max(next, d.now())
		if w.sleep(next-d.now()) != nil {
			return
		}
		now := d.now()
		if late {
			d.shards[0].recordLateness(next, now)
		}
		d.disturbances.sample(now)
	}
}

func processCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func usableCores() int { return runtime.GOMAXPROCS(0) }

// holdTail is how long the last interval waits for operations in flight, so that they do not form
// an interval of their own.
const holdTail = 250 * time.Millisecond

var errStuck = errors.New("no answer from the client")

// collect gathers the workers' counts once a second until all workers have returned. If only stuck
// workers are left, it abandons them and counts their operations as unknown. It returns when that
// was.
func (d *driver) collect(g *segment, away map[*worker]bool, returned <-chan *worker, t, highest int64) time.Duration {
	from, tick := g.start, int64(1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := g.stopped
	for len(away) > 0 {
		next := g.start + time.Duration(tick)*time.Second
		if g.end > 0 && next >= g.end && next < g.end+time.Second {
			next = max(next, g.end+holdTail)
		}
		timer.Reset(next - d.now())
		select {
		case w := <-returned:
			delete(away, w)
			continue
		case <-stopped:
			stopped = nil
			d.interrupt()
			continue
		case <-timer.C:
		}
		now := d.now()
		d.flush(from, now, min(t+tick-1, highest))
		from, tick = now, int64((now-g.start)/time.Second)+1
		d.abandon(g, now, away)
	}
	now := d.now()
	d.flush(from, now, min(t+tick-1, highest))
	return now
}

func (d *driver) interrupt() {
	for _, w := range d.workers {
		if w.waker != nil {
			_ = w.waker.interrupt() // fails only if closed
		}
	}
}

func (d *driver) abandon(g *segment, now time.Duration, away map[*worker]bool) {
	for w := range away {
		if w.ctx.Load().overdue(now) < stuckAfter {
			return
		}
	}
	if !g.closedAt(now) && !g.expiredAt(now) && (g.operations == 0 || g.pace.issued() < g.operations) {
		g.stop(stoppedStuck)
	}
	for w := range away {
		w.shard.mu.Lock()
		if c := w.ctx.Load(); c.overdue(now) > 0 { // still stuck under the lock
			w.abandoned = true
			w.recordAbandoned(c.doing, time.Duration(c.at.Load())-d.spec.Timeout)
			took := now - time.Duration(c.at.Load()) + d.spec.Timeout
			w.shard.now.addOperation(c.doing, times{took, took}, &OpError{InDoubt, classStuck, "",
				fmt.Errorf("%w for %v after the timeout of %v", errStuck, stuckAfter, d.spec.Timeout)})
			d.stuck++
			delete(away, w)
			d.workers = removeWorker(d.workers, w)
		}
		w.shard.mu.Unlock()
	}
}

func removeWorker(ws []*worker, w *worker) []*worker {
	return slices.DeleteFunc(slices.Clone(ws), func(x *worker) bool { return x == w })
}

func (d *driver) flush(from, now time.Duration, t int64) {
	i := Interval{T: t, Start: d.base.Add(from), Length: now - from, Disturbance: d.disturbances.flush(now)}
	for _, s := range d.shards {
		counted := s.swap()
		i.Writes = counted.writes.since(from, now, i.Writes)
		counted.drain(&i.Totals)
	}
	for _, w := range d.workers {
		if w.ctx.Load().inFlight() {
			i.InFlight++
		}
	}
	cpu, retries := processCPU(), d.clientRetries()
	i.CPU, i.Retries = cpu-d.cpu, i.Retries+retries-d.retries
	d.cpu, d.retries = cpu, retries
	d.emit(i)
}

func (d *driver) clientRetries() (n int64) {
	for _, w := range d.workers {
		if r, ok := w.client.(Retrier); ok {
			n += r.Retries()
		}
	}
	return n
}
