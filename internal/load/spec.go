package load

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// Phase is what a drive does.
type Phase string

// Phases.
const (
	PhaseLoad Phase = "load" // insert every record; ends when all are acknowledged
	PhaseRun  Phase = "run"  // the workload's mix of operations
	// PhaseAudit reads back what a run phase wrote.
	PhaseAudit Phase = "audit"
)

// Arrival is when operations are meant to be sent.
type Arrival string

// Arrivals.
const (
	// Closed: each of Threads workers sends its next operation when its last one has
	// ended, with a Target no earlier than the next free slot of Target a second.
	Closed Arrival = "closed"
	// Constant and Poisson are open loops: Target arrivals a second on average,
	// evenly spaced or with exponential gaps, whatever the database does.
	Constant Arrival = "constant"
	Poisson  Arrival = "poisson"
)

// AfterStall is what becomes of operations that nobody was free to send when they were
// due: every thread, or all of MaxInFlight, were waiting for the database.
type AfterStall string

// Policies after a stall.
const (
	// Catchup sends them late, as fast as it can. Their response time counts from
	// when they were due. What is still waiting StallAfter after the end is dropped.
	Catchup AfterStall = "catchup"
	// Skip never sends them and counts them as dropped. A closed loop skips what is
	// more than StallAfter late; an open loop all that found MaxInFlight in flight.
	Skip AfterStall = "skip"
)

// StallAfter is the lateness beyond which a closed loop with a target has stalled.
// Below it, lateness is the ordinary unevenness of service times.
const StallAfter = 100 * time.Millisecond

// Defaults of Spec.
const (
	DefaultThreads     = 1
	DefaultMaxInFlight = 256
	DefaultTimeout     = 10 * time.Second
	DefaultGiveUp      = 30 * time.Second
)

// ErrSpec marks a Spec that cannot be driven.
var ErrSpec = errors.New("bad load")

// Spec says what to drive. Its zero values stand for the defaults named here.
type Spec struct {
	Phase    Phase         `json:"phase"` // default run
	Workload ycsb.Workload `json:"workload"`
	// Tree is a workload on a directory tree in place of the mix of operations; Workload
	// then has no more than the number of records.
	Tree *mdtest.Workload `json:"tree,omitempty"`
	// Table overrides the workload's.
	Table string `json:"table,omitempty"`

	Arrival Arrival `json:"arrival"` // default closed
	// Threads are the workers of a closed loop, each with a client of its own.
	Threads int `json:"threads"`
	// Target in operations a second; 0 is unlimited (closed loop only).
	Target float64 `json:"target_ops_s"`
	// MaxInFlight bounds an open loop; each operation in flight has a client.
	MaxInFlight int `json:"max_in_flight"`
	// AfterStall defaults to catchup in a closed loop, to skip in an open one.
	AfterStall AfterStall `json:"after_stall"`

	// Operations to end after, warm-up left out. 0 is the workload's operation count
	// where Duration is 0 too, else no bound. The load phase takes its count from
	// the workload.
	Operations int64         `json:"operations"`
	Duration   time.Duration `json:"duration_ns"`
	// Warmup is driven first, at the same pace, drained and left out of the result.
	Warmup time.Duration `json:"warmup_ns"`
	// Timeout bounds each operation.
	Timeout time.Duration `json:"timeout_ns"`
	// GiveUp ends a load phase in which no insert was acknowledged for so long.
	GiveUp time.Duration `json:"give_up_ns"`
	// Batch is how many records the load phase inserts in one request, where the client is
	// a Bulk and no Target is set. Each has the request's latency. 0 and 1: one at a time.
	Batch int `json:"batch,omitempty"`
	// Seed determines the n-th operation, its key and its values, and the n-th
	// arrival, whatever the timing and the number of threads.
	Seed uint64 `json:"seed"`
	// Audit makes the writes known by version; it is what the audit phase reads back.
	Audit *AuditSpec `json:"audit,omitempty"`
	// Gate, when set, is called when all clients are open, and again when the warm-up has drained. The
	// drive goes on when it returns: with the others that run beside it.
	Gate func() `json:"-"`
	// Began, when set, is called once as the measurement begins, before its first
	// operation and after the warm-up has drained.
	Began func(at time.Time) `json:"-"`
}

// withDefaults fills in what was left out.
func (s Spec) withDefaults() Spec {
	if s.Phase == "" {
		s.Phase = PhaseRun
	}
	if s.Arrival == "" {
		s.Arrival = Closed
	}
	if s.Threads == 0 {
		s.Threads = DefaultThreads
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
		s.GiveUp = DefaultGiveUp
	}
	if s.Operations == 0 && s.Duration == 0 {
		s.Operations = s.Workload.OperationCount
	}
	if s.Phase == PhaseLoad {
		s.Operations, s.Warmup = s.Workload.InsertCount, 0
		s.AfterStall = Catchup // a record that is skipped would be missing
	}
	if s.Table != "" {
		s.Workload.Table = s.Table
	}
	s.Table = s.Workload.Table
	return s
}

// Validate says what of a Spec cannot be driven.
func (s Spec) Validate() error {
	s = s.withDefaults()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Phase != PhaseLoad && s.Phase != PhaseRun && s.Phase != PhaseAudit:
		return bad("phase %q is none of load, run, audit", s.Phase)
	case s.Phase == PhaseAudit && s.Audit == nil:
		return bad("nothing to audit")
	case s.Audit != nil && s.Workload.Fields > audit.MaxFields:
		return bad("records of more than %d fields cannot be audited", audit.MaxFields)
	case s.Arrival != Closed && s.Arrival != Constant && s.Arrival != Poisson:
		return bad("arrival %q is none of closed, constant, poisson", s.Arrival)
	case s.AfterStall != Catchup && s.AfterStall != Skip:
		return bad("after_stall %q is neither catchup nor skip", s.AfterStall)
	case s.Threads < 1:
		return bad("threads %d is below 1", s.Threads)
	case s.MaxInFlight < 1:
		return bad("max_in_flight %d is below 1", s.MaxInFlight)
	case !(s.Target >= 0 && s.Target <= 1e9): // NaN too
		return bad("target %v is not between 0 and 1e9 operations a second", s.Target)
	case s.Batch < 0:
		return bad("batch %d is below 0", s.Batch)
	case s.Arrival != Closed && s.Target == 0:
		return bad("arrival %s needs a target", s.Arrival)
	case s.Operations < 0 || s.Duration < 0 || s.Warmup < 0 || s.Timeout < 0 || s.GiveUp < 0:
		return bad("operations and times cannot be negative")
	case s.Phase != PhaseAudit && s.Operations == 0 && s.Duration == 0:
		return bad("neither operations nor a duration to end after")
	case s.Workload.Fields < 1:
		return bad("no workload")
	}
	return nil
}

// gate waits for the drives beside this one.
func (s Spec) gate() {
	if s.Gate != nil {
		s.Gate()
	}
}

// workers is how many clients are opened.
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
