package load

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// Counts counts operations by outcome.
type Counts struct {
	OK      int64 `json:"ok"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
	Dropped int64 `json:"dropped"`
}

// Ended is the number of operations that ended, with any outcome.
func (c Counts) Ended() int64 { return c.OK + c.Failed + c.Unknown }

func (c *Counts) Add(o Counts) {
	c.OK += o.OK
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Dropped += o.Dropped
}

// Latency has two clocks. Service counts from sending to the end, Response from when the operation
// was due.
type Latency struct {
	Service  Histogram `json:"service"`
	Response Histogram `json:"response"`
}

func (l *Latency) Merge(o Latency) {
	l.Service.Merge(o.Service)
	l.Response.Merge(o.Response)
}

// Operation holds the figures of one kind of operation. READ and UPDATE include those inside
// READ-MODIFY-WRITE; such an UPDATE is due when its READ has ended. VERIFY, with data integrity
// only, is the time of the check.
type Operation struct {
	Counts
	Latency       Latency `json:"latency"`        // of successful operations
	FailedLatency Latency `json:"failed_latency"` // of failed and unknown operations
	// Returns counts operations by YCSB's status names: OK, NOT_FOUND, TIMEOUT ...
	Returns map[string]int64 `json:"returns"`
}

// ErrorCount counts operations that did not succeed.
type ErrorCount struct {
	Operation string  `json:"operation"`
	Outcome   Outcome `json:"outcome"`
	Class     string  `json:"class"`
	Node      string  `json:"node,omitempty"`
	Count     int64   `json:"count"`
	Example   string  `json:"example,omitempty"`
}

// Totals holds the counts of an interval or of the whole measurement. Counts and Latency count a
// read-modify-write as one operation; Operations also has its parts.
type Totals struct {
	Counts
	// Retries by the driver (load phase) and the clients. They do not count as operations.
	Retries    int64                 `json:"retries"`
	Latency    Latency               `json:"latency"` // of successful operations
	Operations map[string]*Operation `json:"operations"`
	Errors     []ErrorCount          `json:"errors,omitempty"`
	// Late is how late the driver sent operations although a worker was free. Without due times, it
	// is how late a probe woke up.
	Late Histogram `json:"late"`
	// CPU time of the driver's process.
	CPU time.Duration `json:"cpu_ns"`
}

// Interval is one second of a drive.
type Interval struct {
	// T is the second of the measurement, negative in the warm-up. Operations that drain the
	// warm-up belong to -1.
	T      int64         `json:"t"`
	Start  time.Time     `json:"start"`
	Length time.Duration `json:"length_ns"` // the last interval can be shorter
	// InFlight is the number of operations in flight at the end.
	InFlight int64 `json:"in_flight"`
	// Writes has a bit for every record.WriteSlot since Start with an acknowledged write.
	Writes []uint64 `json:"writes,omitempty"`
	// Disturbance is the disturbed part of the interval; nil for none.
	Disturbance *Disturbance `json:"held,omitempty"`
	Totals
	// Pools are the merged intervals; nil for a drive without pools. With several pools, each has
	// its own Disturbance.
	Pools []PoolInterval `json:"-"`
}

// Cores is the driver's CPU use, in cores.
func (i Interval) Cores() float64 { return ratio(i.CPU.Seconds(), i.Length.Seconds()) }

// Result is the result of a drive.
type Result struct {
	// Spec includes the defaults.
	Spec Spec `json:"spec"`
	// Started is the start of the measurement. Duration is how long operations were sent, or until
	// the last of a given number ended. Drain is the wait for operations in flight, which count
	// too. Warmup, with its drain, came before.
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Drain    time.Duration `json:"drain_ns"`
	Warmup   time.Duration `json:"warmup_ns"`
	// Stopped is the reason for the end, one of the stopped constants.
	Stopped string `json:"stopped"`
	Totals
	// Stuck counts operations of abandoned workers, whose clients did not obey their deadline. They
	// count as unknown.
	Stuck int64 `json:"stuck,omitempty"`
	// Unacknowledged is the number of records that a load phase did not store; UnacknowledgedKeys
	// lists the first.
	Unacknowledged     int64    `json:"unacknowledged,omitempty"`
	UnacknowledgedKeys []string `json:"unacknowledged_keys,omitempty"`
	// Pools are the merged results; nil for a drive without pools.
	Pools []PoolResult `json:"-"`
	// Audited is set by a run phase with an audit, Audit by an audit phase.
	Audited *audit.Counts `json:"audited,omitempty"`
	Audit   *AuditResult  `json:"audit,omitempty"`
	// Cores is the number of cores that the driver could use. Warnings reports whether the client was
	// the limit.
	Cores    int      `json:"cores"`
	Warnings []string `json:"warnings,omitempty"`
}

const (
	stoppedOperations = "operations"
	stoppedDuration   = "time"
	stoppedAsked      = "stopped" // the context ended or Stop was called
	stoppedGaveUp     = "gave up" // a load phase without progress
	stoppedStuck      = "stuck"   // no client answers or obeys its deadline
)

// Throughput is the rate of ended operations, per second.
func (r Result) Throughput() float64 {
	return ratio(float64(r.Ended()), r.Duration.Seconds())
}

// DroppedRate is the rate of operations that were due and never sent, per second.
func (r Result) DroppedRate() float64 {
	return ratio(float64(r.Dropped), r.Duration.Seconds())
}

// Goodput is the rate of successful operations, per second.
func (r Result) Goodput() float64 {
	return ratio(float64(r.OK), r.Duration.Seconds())
}

// ClientCPU is the driver's CPU use over the measurement, in cores.
func (r Result) ClientCPU() float64 { return ratio(r.CPU.Seconds(), r.Duration.Seconds()) }

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Summaries returns the operations in the form of summary.json.
func (t Totals) Summaries() map[string]record.OperationSummary {
	all := map[string]record.OperationSummary{}
	for name, o := range t.Operations {
		all[name] = record.OperationSummary{
			Count: o.OK, Failed: o.Failed + o.Unknown, Service: o.Latency.Service.Summary(), Response: o.Latency.Response.Summary(),
		}
	}
	return all
}

func (t Totals) operationNames() []string {
	order := []string{}
	for k := range ycsb.Kinds {
		if _, ok := t.Operations[k.String()]; ok {
			order = append(order, k.String())
		}
	}
	for k := range mdtest.Kinds {
		if _, ok := t.Operations[k.String()]; ok {
			order = append(order, k.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Operations)) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// Series returns the operations in the form of YCSB's output. interval selects ycsb.IntervalOp for
// service times, IntervalIntended for response times, or IntervalBoth.
func (t Totals) Series(interval string) (out []ycsb.Series) {
	shown := func(prefix string, pick func(Latency) Histogram) {
		for _, name := range t.operationNames() {
			op := t.Operations[name]
			if op.Ended() == 0 || name == verifySeries && prefix != "" {
				continue
			}
			s := ycsb.Series{Name: prefix + name, Latency: pick(op.Latency).Micros()}
			if prefix == "" {
				s.Returns = op.Returns
			}
			out = append(out, s)
			if failed := pick(op.FailedLatency); failed.Count() > 0 {
				out = append(out, ycsb.Series{Name: prefix + name + "-FAILED", Latency: failed.Micros()})
			}
		}
	}
	service := func(l Latency) Histogram { return l.Service }
	response := func(l Latency) Histogram { return l.Response }
	switch interval {
	case ycsb.IntervalIntended:
		shown("", response)
	case ycsb.IntervalBoth:
		shown("", service)
		shown("Intended-", response)
	default:
		shown("", service)
	}
	return out
}

// Report returns the content of YCSB's text output.
func (r Result) Report(interval string, percentiles []float64) ycsb.Report {
	report := ycsb.Report{
		RunTime: r.Duration, OK: r.OK, Ended: r.Ended(),
		Series: r.Series(interval), Percentiles: percentiles,
		Figures: []ycsb.Figure{{Name: "Failed", Value: float64(r.Failed)}, {Name: "Unknown", Value: float64(r.Unknown)}},
	}
	add := func(name string, v float64) {
		if v > 0 {
			report.Figures = append(report.Figures, ycsb.Figure{Name: name, Value: v})
		}
	}
	add("Dropped", float64(r.Dropped))
	add("Retries", float64(r.Retries))
	add("ClientCPU(cores)", r.ClientCPU())
	add("ClientLate99(us)", float64(r.Late.Quantile(0.99).Microseconds()))
	return report
}

// Keys returns the key space of a zipfian workload that inserts, nil for other drives.
func (r Result) Keys() *record.Keys {
	w := r.Spec.Workload
	inserts, bounded := w.ExpectedInserts()
	if !bounded || r.Spec.Phase != PhaseRun || r.Spec.Tree != nil {
		return nil
	}
	return &record.Keys{ExpectedOperations: w.ExpectedOperations, ExpectedInserts: inserts}
}

// KeyspaceWarning reports that a workload inserted more records than its requests can choose, "" if
// it did not. YCSB draws the keys of a zipfian workload for a fixed number of operations.
func (r Result) KeyspaceWarning() string {
	k, inserts := r.Keys(), r.Operations[ycsb.Insert.String()]
	if k == nil || inserts == nil || inserts.OK <= k.ExpectedInserts {
		return ""
	}
	return fmt.Sprintf("%d records were inserted, but requests choose only the first %d, since keys are drawn for %d operations",
		inserts.OK, k.ExpectedInserts, k.ExpectedOperations)
}
