package load

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// Phase is the task of a drive.
type Phase string

const (
	PhaseLoad Phase = "load" // inserts every record; ends when all are acknowledged
	PhaseRun  Phase = "run"  // runs the workload's mix of operations
	// PhaseAudit reads back the writes of a run phase.
	PhaseAudit Phase = "audit"
)

// Arrival is the arrival process of operations.
type Arrival string

const (
	// Closed is a closed loop: each of Threads workers sends its next operation when its last one
	// has ended. With a Target, operations are sent no earlier than their slot at that rate.
	Closed Arrival = "closed"
	// Constant and Poisson are open loops: Target arrivals per second on average, evenly spaced or
	// with exponential gaps, independent of the database.
	Constant Arrival = "constant"
	Poisson  Arrival = "poisson"
)

// AfterStall is what happens to operations that no worker was free to send when they were due.
type AfterStall string

const (
	// Catchup sends them late, as fast as possible. Their response time counts from when they were
	// due. Operations that still wait stallAfter after the end are dropped.
	Catchup AfterStall = "catchup"
	// Skip drops them. A closed loop drops operations that are more than stallAfter late. An open
	// loop drops all that find MaxInFlight operations in flight.
	Skip AfterStall = "skip"
)

// stallAfter is the lateness above which a closed loop with a target has stalled. Less is normal
// variation of service times.
const stallAfter = 100 * time.Millisecond

const (
	defaultThreads     = 1
	DefaultMaxInFlight = 256
	DefaultTimeout     = 10 * time.Second
	defaultGiveUp      = 30 * time.Second
)

var errSpec = errors.New("invalid load")

// Spec describes a drive. Zero values stand for defaults.
type Spec struct {
	Phase    Phase         `json:"phase"` // default run
	Workload ycsb.Workload `json:"workload"`
	// Tree replaces the mix of operations by a workload on a directory tree. Workload then holds
	// only the number of records.
	Tree *mdtest.Workload `json:"tree,omitempty"`
	// Table overrides the workload's table.
	Table string `json:"table,omitempty"`

	Arrival Arrival `json:"arrival"` // default closed
	// Threads is the number of workers of a closed loop, each with its own client.
	Threads int `json:"threads"`
	// Target is the rate in operations per second; 0 is unlimited, in a closed loop only.
	Target float64 `json:"target_ops_s"`
	// MaxInFlight bounds the operations in flight of an open loop. Each has its own client.
	MaxInFlight int `json:"max_in_flight"`
	// AfterStall defaults to catchup in a closed loop and to skip in an open loop.
	AfterStall AfterStall `json:"after_stall"`

	// Operations is the number of operations after the warm-up. 0 means the workload's operation
	// count if Duration is 0 too, otherwise no limit. The load phase ignores it and inserts the
	// workload's records.
	Operations int64         `json:"operations"`
	Duration   time.Duration `json:"duration_ns"`
	// Warmup is driven first, at the same pace, drained, and excluded from the result.
	Warmup time.Duration `json:"warmup_ns"`
	// Timeout bounds each operation.
	Timeout time.Duration `json:"timeout_ns"`
	// GiveUp ends a load phase without an acknowledged insert for this time.
	GiveUp time.Duration `json:"give_up_ns"`
	// Batch is the number of records per request of a load phase, for a BulkClient without a
	// Target. Each record has the latency of its request. 0 and 1 insert one by one.
	Batch int `json:"batch,omitempty"`
	// Seed determines the n-th operation, with its key and values, and the n-th arrival,
	// independent of timing and number of threads.
	Seed uint64 `json:"seed"`
	// Audit records writes in a run phase, and selects what an audit phase reads back.
	Audit *AuditSpec `json:"audit,omitempty"`
	// Gate, if set, is called when all clients are open, and again when the warm-up has drained.
	// The drive continues when it returns.
	Gate func() `json:"-"`
	// Began, if set, is called once before the first operation of the measurement.
	Began func(at time.Time) `json:"-"`
}

func (s Spec) withDefaults() Spec {
	if s.Phase == "" {
		s.Phase = PhaseRun
	}
	if s.Arrival == "" {
		s.Arrival = Closed
	}
	if s.Threads == 0 {
		s.Threads = defaultThreads
	}
	if s.MaxInFlight == 0 {
		s.MaxInFlight = DefaultMaxInFlight
	}
	if s.AfterStall == "" {
		s.AfterStall = Skip
		if s.Arrival == Closed {
			s.AfterStall = Catchup
		}
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if s.GiveUp == 0 {
		s.GiveUp = defaultGiveUp
	}
	if s.Operations == 0 && s.Duration == 0 {
		s.Operations = s.Workload.OperationCount
	}
	if s.Phase == PhaseLoad {
		s.Operations, s.Warmup = s.Workload.InsertCount, 0
		s.AfterStall = Catchup // a dropped insert would be a missing record
	}
	if s.Table != "" {
		s.Workload.Table = s.Table
	}
	s.Table = s.Workload.Table
	return s
}

// Validate returns an error that wraps errSpec if the Spec is invalid.
func (s Spec) Validate() error {
	s = s.withDefaults()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", errSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Phase != PhaseLoad && s.Phase != PhaseRun && s.Phase != PhaseAudit:
		return bad("unknown phase %q, want load, run or audit", s.Phase)
	case s.Phase == PhaseAudit && s.Audit == nil:
		return bad("phase audit without an audit")
	case s.Audit != nil && s.Workload.Fields > audit.MaxFields:
		return bad("records of more than %d fields cannot be audited", audit.MaxFields)
	case s.Arrival != Closed && s.Arrival != Constant && s.Arrival != Poisson:
		return bad("unknown arrival %q, want closed, constant or poisson", s.Arrival)
	case s.AfterStall != Catchup && s.AfterStall != Skip:
		return bad("unknown after_stall %q, want catchup or skip", s.AfterStall)
	case s.Threads < 1:
		return bad("threads %d is below 1", s.Threads)
	case s.MaxInFlight < 1:
		return bad("max_in_flight %d is below 1", s.MaxInFlight)
	case !(s.Target >= 0 && s.Target <= 1e9): // also rejects NaN
		return bad("target %v is not between 0 and 1e9 operations/s", s.Target)
	case s.Batch < 0:
		return bad("batch %d is below 0", s.Batch)
	case s.Arrival != Closed && s.Target == 0:
		return bad("arrival %s needs a target", s.Arrival)
	case s.Operations < 0 || s.Duration < 0 || s.Warmup < 0 || s.Timeout < 0 || s.GiveUp < 0:
		return bad("operations and times cannot be negative")
	case s.Phase != PhaseAudit && s.Operations == 0 && s.Duration == 0:
		return bad("neither operations nor a duration given")
	case s.Workload.Fields < 1:
		return bad("workload missing")
	}
	return nil
}

func (s Spec) gate() {
	if s.Gate != nil {
		s.Gate()
	}
}

func (s Spec) workers() int {
	n := int64(s.Threads)
	if s.Arrival != Closed {
		n = int64(s.MaxInFlight)
	}
	if s.Operations > 0 && s.Warmup == 0 {
		n = min(n, s.Operations)
	}
	return int(n)
}
