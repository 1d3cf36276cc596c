package load

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// Counts are operations by what became of them.
type Counts struct {
	OK      int64 `json:"ok"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
	Dropped int64 `json:"dropped"`
}

// Ended is how many operations ended, however.
func (c Counts) Ended() int64 { return c.OK + c.Failed + c.Unknown }

// Add adds o.
func (c *Counts) Add(o Counts) {
	c.OK += o.OK
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Dropped += o.Dropped
}

// Latency has both clocks: Service is from sent to done, Response from when the
// operation was meant to be sent to done.
type Latency struct {
	Service  Histogram `json:"service"`
	Response Histogram `json:"response"`
}

// Merge adds o.
func (l *Latency) Merge(o Latency) {
	l.Service.Merge(o.Service)
	l.Response.Merge(o.Response)
}

// Operation is one kind of operation. READ and UPDATE include those inside of
// READ-MODIFY-WRITE; such an UPDATE is meant to be sent when its READ has ended.
// VERIFY appears with data integrity: the time the check took.
type Operation struct {
	Counts
	Latency       Latency `json:"latency"`        // of those that ended ok
	FailedLatency Latency `json:"failed_latency"` // of those that failed or are unknown
	// Returns counts them by YCSB's status names: OK, NOT_FOUND, TIMEOUT ...
	Returns map[string]int64 `json:"returns"`
}

// ErrorCount counts operations that did not end ok.
type ErrorCount struct {
	Operation string  `json:"operation"`
	Outcome   Outcome `json:"outcome"`
	Class     string  `json:"class"`
	Node      string  `json:"node,omitempty"`
	Count     int64   `json:"count"`
	Example   string  `json:"example,omitempty"`
}

// Totals is what was counted in some time: in one interval, or in the whole
// measurement. Counts and Latency take a read-modify-write as one operation;
// Operations has its parts too.
type Totals struct {
	Counts
	// Retries that the driver (load phase) and the clients made, never counted as
	// operations of their own.
	Retries    int64                 `json:"retries"`
	Latency    Latency               `json:"latency"` // of operations that ended ok
	Operations map[string]*Operation `json:"operations"`
	Errors     []ErrorCount          `json:"errors,omitempty"`
	// Late is how late the driver sent operations that it was free to send, and
	// where nothing is due at a time of its own, how late it woke up for a probe.
	Late Histogram `json:"late"`
	// CPU time that the driver's process used.
	CPU time.Duration `json:"cpu_ns"`
}

// Interval is one second of a drive.
type Interval struct {
	// T is seconds since the measurement began: negative in warm-up, 0 the first.
	// Operations that drain the warm-up belong to -1.
	T      int64         `json:"t"`
	Start  time.Time     `json:"start"`
	Length time.Duration `json:"length_ns"` // the last one is shorter
	// InFlight operations when it ended.
	InFlight int64 `json:"in_flight"`
	// Writes has a bit for every WriteSlot since Start in which a write was acknowledged.
	Writes []uint64 `json:"writes,omitempty"`
	// Held is what of the interval lies where the driver was held up; nil for nothing.
	Disturbance *Disturbance `json:"held,omitempty"`
	Totals
	// Pools are the intervals that this one is of; a drive by itself has none. Where they are
	// several, Held is each one's own.
	Pools []PoolInterval `json:"-"`
}

// WriteSlot is how finely an Interval tells when writes were acknowledged.
const WriteSlot = 10 * time.Millisecond

// Cores is the driver's CPU use.
func (i Interval) Cores() float64 { return ratio(i.CPU.Seconds(), i.Length.Seconds()) }

// Result is a drive that has ended.
type Result struct {
	// Spec is what was driven, defaults filled in.
	Spec Spec `json:"spec"`
	// Started is when the measurement began, Duration for how long it sent
	// operations, or took until the last of a given number had ended. Drain is how
	// long it then waited for those in flight, which count too. Warmup and its
	// draining came before.
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration_ns"`
	Drain    time.Duration `json:"drain_ns"`
	Warmup   time.Duration `json:"warmup_ns"`
	// Stopped says what ended it.
	Stopped string `json:"stopped"`
	Totals
	// Stuck operations outlived their timeout and the grace after it and were
	// counted as unknown; their goroutines were left behind.
	Stuck int64 `json:"stuck,omitempty"`
	// Unacknowledged keys of a load phase; UnacknowledgedKeys lists the first.
	Unacknowledged     int64    `json:"unacknowledged,omitempty"`
	UnacknowledgedKeys []string `json:"unacknowledged_keys,omitempty"`
	// Pools are the results that this one is of; a drive by itself has none.
	Pools []PoolResult `json:"-"`
	// Audited is of a run phase with an audit, Audit of an audit phase.
	Audited *AuditCounts `json:"audited,omitempty"`
	Audit   *AuditResult `json:"audit,omitempty"`
	// Cores that the driver could use, and Warnings for a reader: that the client
	// was the limit.
	Cores    int      `json:"cores"`
	Warnings []string `json:"warnings,omitempty"`
}

// What ends a drive.
const (
	StoppedOperations = "operations"
	StoppedDuration   = "time"
	StoppedAsked      = "stopped" // the context ended or Stop was called
	StoppedGaveUp     = "gave up" // a load phase without progress
	StoppedStuck      = "stuck"   // no client answers, nor obeys its deadline
)

// Throughput is operations that ended, a second; Goodput those that ended ok.
func (r Result) Throughput() float64 {
	return ratio(float64(r.Ended()), r.Duration.Seconds())
}

// DroppedRate is operations that were due and never sent, a second.
func (r Result) DroppedRate() float64 {
	return ratio(float64(r.Dropped), r.Duration.Seconds())
}

// Goodput is operations that ended ok, a second.
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

// OperationNames is the order in which operations are shown.
func (t Totals) OperationNames() []string {
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

// Series are the operations as YCSB shows them. interval is ycsb.IntervalOp for the
// service times, IntervalIntended for the response times, IntervalBoth for both.
func (t Totals) Series(interval string) (out []ycsb.Series) {
	shown := func(prefix string, pick func(Latency) Histogram) {
		for _, name := range t.OperationNames() {
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

// Report is the result as YCSB's text output has it.
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

// Keys returns what the keys of a zipfian workload that inserts were drawn for, nil for other drives.
func (r Result) Keys() *record.Keys {
	w := r.Spec.Workload
	inserts, bounded := w.ExpectedInserts()
	if !bounded || r.Spec.Phase != PhaseRun || r.Spec.Tree != nil {
		return nil
	}
	return &record.Keys{ExpectedOperations: w.ExpectedOperations, ExpectedInserts: inserts}
}

// KeyspaceWarning says that a workload inserted more records than its requests can choose, "" if it did not. YCSB
// draws the keys of a zipfian workload for a number of operations that is given beforehand.
func (r Result) KeyspaceWarning() string {
	k, inserts := r.Keys(), r.Operations[ycsb.Insert.String()]
	if k == nil || inserts == nil || inserts.OK <= k.ExpectedInserts {
		return ""
	}
	return fmt.Sprintf("%d records were inserted, and requests choose the first %d of them, since keys are drawn for %d operations",
		inserts.OK, k.ExpectedInserts, k.ExpectedOperations)
}
