package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// OpenClient opens the client of one worker.
type OpenClient func(ctx context.Context) (Client, error)

// ErrIncomplete means that a load phase ended before every record was acknowledged.
var ErrIncomplete = errors.New("records were not acknowledged")

// warmupFirst numbers the operations of the warm-up. The measurement has the same operations with
// and without a warm-up.
const warmupFirst = 1 << 62

// Run drives a database until the end of spec or of ctx. The end of ctx stops the drive early;
// operations in flight are awaited up to their timeout. onSecond may be nil. It is called once a
// second from one goroutine and must return soon.
//
// Failed operations are part of the result, not an error. An error means that nothing was measured,
// or wraps ErrIncomplete: the result of a load phase then lists the unacknowledged records.
func Run(ctx context.Context, spec Spec, open OpenClient, onSecond func(Interval)) (result Result, err error) {
	if err := spec.Validate(); err != nil {
		return Result{}, err
	}
	spec = spec.withDefaults()
	if spec.Phase == PhaseAudit && spec.Tree != nil {
		return auditTree(ctx, spec, open, onSecond)
	}
	if spec.Phase == PhaseAudit {
		return auditRecords(ctx, spec, open, onSecond)
	}
	d := newDriver(ctx, spec, onSecond)
	if err := d.open(ctx, open); err != nil {
		return Result{}, err
	}
	defer func() {
		if e := d.close(); e != nil && err == nil {
			result.Warnings = append(result.Warnings, e.Error())
		}
	}()

	result = Result{Spec: spec, Cores: usableCores()}
	spec.gate()
	if spec.Warmup > 0 {
		before := d.now()
		g := d.newSegment(warmupFirst, 0, spec.Warmup, mixSeed(spec.Seed, 1))
		if _, err := d.run(ctx, g, -int64(math.Ceil(spec.Warmup.Seconds())), -1); err != nil {
			return Result{}, err
		}
		result.Warmup = d.now() - before
	}
	total := &result.Totals
	d.emit = func(i Interval) {
		total.Merge(i.Totals)
		if onSecond != nil {
			onSecond(i)
		}
	}
	spec.gate()
	if spec.Began != nil {
		spec.Began(time.Now())
	}
	g := d.newSegment(0, spec.Operations, spec.Duration, mixSeed(spec.Seed, 2))
	result.Started = d.base.Add(g.start)
	ended, err := d.run(ctx, g, 0, math.MaxInt64)
	if err != nil {
		return Result{}, err
	}
	result.Stopped, result.Duration = g.outcome(ended)
	result.Drain = max(0, ended-g.start-result.Duration)
	result.Stuck = d.stuck
	result.Warnings = append(result.Warnings, clientWarnings(result)...)
	if why := result.KeyspaceWarning(); why != "" {
		result.Warnings = append(result.Warnings, why+": set a larger operationcount")
	}
	if spec.Phase == PhaseLoad {
		return result, result.listUnacknowledged(g)
	}
	return result, d.saveAudit(&result, g.start)
}

func mixSeed(seed, purpose uint64) uint64 { return seed ^ purpose*0x9e3779b97f4a7c15 }

func (r *Result) listUnacknowledged(g *segment) error {
	w := r.Spec.Workload
	r.Unacknowledged = w.InsertCount - r.OK
	if r.Unacknowledged == 0 {
		return nil
	}
	r.UnacknowledgedKeys = g.unacknowledgedKeys
	for n := g.pace.issued(); n < w.InsertCount && len(r.UnacknowledgedKeys) < maxListed; n++ {
		r.UnacknowledgedKeys = append(r.UnacknowledgedKeys, w.Key(w.InsertStart+n))
	}
	err := fmt.Errorf("%w: %d of %d (%s)", ErrIncomplete, r.Unacknowledged, w.InsertCount, r.Stopped)
	if len(r.UnacknowledgedKeys) > 0 {
		err = fmt.Errorf("%w, the first %s", err, r.UnacknowledgedKeys[0])
	}
	if len(r.Errors) > 0 {
		err = fmt.Errorf("%w; %s: %s", err, r.Errors[0].Class, r.Errors[0].Example)
	}
	return err
}

const (
	// maxClientCPU is the share of its cores above which the driver's own scheduling shows in
	// latencies.
	maxClientCPU = 0.9
	// maxLateness of the 99th percentile is exceeded only by an overloaded client.
	maxLateness = 5 * time.Millisecond
)

// clientWarnings reports whether the client was the limit. Drives below one second have no
// warnings.
func clientWarnings(r Result) (out []string) {
	if r.Duration < time.Second {
		return nil
	}
	if cpu := r.ClientCPU(); cpu > maxClientCPU*float64(r.Cores) {
		out = append(out, fmt.Sprintf("the client was the limit: it used %.2f of its %d cores", cpu, r.Cores))
	}
	if late := r.Late.Quantile(0.99); late > maxLateness {
		out = append(out, fmt.Sprintf("the client was late: it sent 1 %% of the operations more than %v after they were due",
			late.Round(100*time.Microsecond)))
	}
	return out
}
