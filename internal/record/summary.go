// Package record writes and reads the run directory. Its files are user data: docs/run-directory.md and docs/run-summary.md documents
// them, their schema fields version them, and they are complete for every finished trial whatever happens later.
package record

import (
	"encoding/json"
	"io"
	"time"
)

const SummarySchema = "skerry/summary/v1"

// Summary is summary.json: one object per trial.
type Summary struct {
	Schema     string  `json:"schema"`
	Experiment string  `json:"experiment"`
	Run        string  `json:"run"`      // the directory's name
	Complete   bool    `json:"complete"` // every planned trial has ended
	Planned    int     `json:"planned"`
	Trials     []Trial `json:"trials"`
}

// Trial is one cell of the matrix, run once.
type Trial struct {
	ID         int            `json:"id"`         // from 1, the order of the experiment file
	Repetition int            `json:"repetition"` // from 1
	Started    time.Time      `json:"started"`
	Parameters map[string]any `json:"parameters"` // the cell: "workload", "scale", ...
	// State is ok, failed (nothing was measured; see Error) or interrupted.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Stopped is what ended the measurement: operations, time, confidence or error.
	Stopped   string  `json:"stopped,omitempty"`
	DurationS float64 `json:"duration_s"` // measured time, warm-up left out
	WarmupS   float64 `json:"warmup_s"`
	SetupS    float64 `json:"setup_s"` // lab, cluster and load
	// Concurrent is the maximum number of other trials of the run that ran at the same time.
	Concurrent int `json:"beside,omitempty"`
	// ClusterOf is the trial whose lab and cluster this trial reused, 0 if it had its own.
	ClusterOf int `json:"cluster_of,omitempty"`
	// Throughput counts operations that ended; goodput counts those that ended ok.
	Throughput float64 `json:"throughput_ops_s"`
	Goodput    float64 `json:"goodput_ops_s"`
	// Interval is the half-width of the 95 % confidence interval of the goodput over Batches batch means of this trial.
	Interval float64  `json:"goodput_ci95_ops_s"`
	Batches  int      `json:"goodput_batches"`
	Outcomes Outcomes `json:"outcomes"`
	// Retries of clients are not counted as operations.
	Retries    int64                       `json:"retries,omitempty"`
	Errors     []ErrorCount                `json:"errors,omitempty"`
	Operations map[string]OperationSummary `json:"operations"` // READ, UPDATE, ...
	// Traffic is nil on a cluster that Skerry did not start: neither its network nor the use of its servers is measured.
	Traffic *Traffic `json:"traffic,omitempty"`
	// Pools are the workloads, if several ran side by side. The figures above are their totals, and names of operations
	// include the workload: readers.READ.
	Pools []Pool `json:"pools,omitempty"`
	// Keys are the parameters of the key distribution of a zipfian workload with inserts; nil for other workloads.
	Keys *Keys `json:"keys,omitempty"`
	// Load reports the loading of the table; nil in runs of older versions.
	Load *Load `json:"load,omitempty"`
	// Events are the events during the measurement, each with its recovery.
	Events []EventImpact `json:"events,omitempty"`
	// Probes are the short jobs next to the workload, in order, if the experiment has probes.
	Probes []Probe `json:"probes,omitempty"`
	// Audit is set if the experiment has an audit.
	Audit      *Audit      `json:"audit,omitempty"`
	Assertions []Assertion `json:"assertions,omitempty"`
	// Bound is what limited the throughput; nil in runs of older versions.
	Bound *Bound `json:"bound,omitempty"`
	// LatencyBound is what determined the response times; nil in runs of older versions.
	LatencyBound *LatencyBound `json:"latency_bound,omitempty"`
	Fidelity     Fidelity      `json:"fidelity"`
	Verdict      Verdict       `json:"verdict"`
	// Machine is where the trial was measured; nil in runs of older versions, and if no lab came up.
	Machine *TrialMachine `json:"machine,omitempty"`
	// Attempt names this attempt, if several machines may have tried the trial.
	Attempt string `json:"attempt,omitempty"`
	// Replaced lists earlier attempts that measured and that this attempt replaces, oldest first.
	Replaced []Replaced `json:"replaced,omitempty"`
}

// SteadyInterval returns Interval. ok is false if the trial has no batches, or has events: the interval assumes a
// stationary mean.
func (t Trial) SteadyInterval() (half float64, ok bool) {
	if t.Batches == 0 || len(t.Events) > 0 {
		return 0, false
	}
	return t.Interval, true
}

// Pool is one of several workloads that ran side by side.
type Pool struct {
	Name     string `json:"name"`
	Workload string `json:"workload"` // its name or file
	Client   string `json:"client"`   // the node that its load came from
	Threads  int    `json:"threads"`
	// Target is in operations per second; 0 means none.
	Target     float64  `json:"target_ops_s,omitempty"`
	DurationS  float64  `json:"duration_s"`
	Throughput float64  `json:"throughput_ops_s"`
	Goodput    float64  `json:"goodput_ops_s"`
	Interval   float64  `json:"goodput_ci95_ops_s"` // as the trial's
	Batches    int      `json:"goodput_batches"`
	Outcomes   Outcomes `json:"outcomes"`
	// All merges all operations of the pool; the trial's operations list each kind.
	All             OperationSummary `json:"all"`
	ClientCPU       float64          `json:"client_cpu_cores"`
	ClientLateP99US float64          `json:"client_late_p99_us"`
	Bound           Bound            `json:"bound"`
}

// Load reports the loading of the table, at the experiment's setup_scale. It is not part of the measurement.
type Load struct {
	Records   int64            `json:"records"`
	DurationS float64          `json:"duration_s"`
	Rate      float64          `json:"records_s"`
	Threads   int              `json:"threads"`
	Batch     int              `json:"batch_records,omitempty"` // maximum records per request, if requests may have several
	Insert    OperationSummary `json:"insert"`                  // each record has the latency of its request
	Retries   int64            `json:"retries,omitempty"`
	Errors    []ErrorCount     `json:"errors,omitempty"`
}

// Bound is what limited a trial's throughput, with the evidence (evidence/bottleneck has the rules).
type Bound struct {
	// By is target, client, machine, node, bandwidth, distance or database.
	By   string `json:"by"`
	What string `json:"what,omitempty"` // the node, or FROM~TO of the link
	Text string `json:"text"`
	// Waiting is the mean number of concurrent operations: throughput times latency.
	Waiting     float64 `json:"waiting"`
	LatencyMS   float64 `json:"latency_ms"`    // mean of all operations
	RoundTripMS float64 `json:"round_trip_ms"` // of the client, weighted by traffic
	// Utilisations of the machine's and the client's cores, of the busiest node's cores, and of the fullest direction
	// of a link.
	MachineShare float64 `json:"machine_share"`
	ClientShare  float64 `json:"client_share"`
	NodeShare    float64 `json:"node_share"`
	LinkShare    float64 `json:"link_share"`
}

// LatencyBound explains the median and the 99th percentile of the response time of all operations.
type LatencyBound struct {
	P50 LatencyCause `json:"p50"`
	P99 LatencyCause `json:"p99"`
}

// LatencyCause explains one percentile of the response time, with the evidence (evidence/bottleneck has the rules).
type LatencyCause struct {
	// By is distance, machine (servers waited for a processor), client (the driver waited for a processor), node
	// (quotas), disk, queue or database.
	By   string `json:"by"`
	What string `json:"what,omitempty"` // FROM~TO of the link
	Text string `json:"text"`
	// OfMachine is true if the machine's processors or disk are the cause, and not the database or the emulated cloud.
	OfMachine bool `json:"of_machine,omitempty"`
	// LatencyMS is the percentile; the other fields are the parts of each wait in it. The parts may overlap, and their
	// sum may exceed the percentile.
	LatencyMS   float64 `json:"latency_ms"`
	RoundTripMS float64 `json:"round_trip_ms"`
	ServersMS   float64 `json:"servers_processor_ms"`
	QuotaMS     float64 `json:"servers_quota_ms"`
	DiskMS      float64 `json:"servers_disk_ms"`
	ClientMS    float64 `json:"client_processor_ms"`
	QueueMS     float64 `json:"queue_ms"`
	// Unknown lists what could not be measured.
	Unknown []string `json:"not_known,omitempty"`
}

const (
	TrialOK          = "ok"
	TrialFailed      = "failed"
	TrialInterrupted = "interrupted"
)

// Outcomes counts operations of the measurement.
type Outcomes struct {
	OK      int64 `json:"ok"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
	Dropped int64 `json:"dropped"`
}

// ErrorCount counts operations that did not end ok, by class and node.
type ErrorCount struct {
	Operation string `json:"operation"`
	Outcome   string `json:"outcome"` // failed or unknown
	Class     string `json:"class"`
	Node      string `json:"node,omitempty"`
	Count     int64  `json:"count"`
	Example   string `json:"example,omitempty"`
}

// OperationSummary is one kind of operation.
type OperationSummary struct {
	Count    int64   `json:"count"`       // that ended ok
	Failed   int64   `json:"failed"`      // failed or unknown
	Service  Latency `json:"service_us"`  // sent to done
	Response Latency `json:"response_us"` // intended to done
}

// Latency returns the response time, or the service time if a closed loop without a target recorded no response time.
func (s OperationSummary) Latency() Latency {
	if s.Response.Max > 0 {
		return s.Response
	}
	return s.Service
}

// Probe is one short job.
type Probe struct {
	Pool       string                      `json:"pool,omitempty"` // its workload, if there are several
	StartS     float64                     `json:"start_s"`        // first operation, seconds of the measurement
	DurationS  float64                     `json:"duration_s"`
	Operations map[string]OperationSummary `json:"operations"` // READ, UPDATE, ...
	Error      string                      `json:"error,omitempty"`
}

// Latency describes the operations that ended ok, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Traffic is the layer-3 bytes on the links during the measurement.
type Traffic struct {
	TotalBytes int64 `json:"total_bytes"`
	// DataBytes excludes the links of the client.
	DataBytes int64         `json:"data_bytes"`
	Pairs     []PairTraffic `json:"pairs"`
}

// PairTraffic is one direction between two nodes.
type PairTraffic struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// Keys are the operations and inserts that YCSB's zipfian request distribution expects. Requests never choose records
// that are inserted beyond them.
type Keys struct {
	ExpectedOperations int64 `json:"expected_operations"`
	ExpectedInserts    int64 `json:"expected_inserts"`
}

// Audit is the result of reading every acknowledged write back. docs/audit.md defines every figure.
type Audit struct {
	// Acknowledged, InDoubt and Refused count the writes of the trial by outcome, including the warm-up's. Keys counts
	// the records that were read back, including those of the load.
	Acknowledged int64 `json:"acknowledged_writes"`
	InDoubt      int64 `json:"writes_in_doubt"`
	Refused      int64 `json:"writes_refused"`
	Keys         int64 `json:"audited_keys"`
	// Lost counts acknowledged writes that no copy has.
	Lost int64 `json:"lost_writes"`
	// Stale counts copies that held an older value than acknowledged, while another copy, or the same copy later, held
	// the newer value.
	Stale int64 `json:"stale_copies"`
	// Unexpected counts values that were never written, or whose write was refused.
	Unexpected int64 `json:"unexpected_values"`
	// Unread counts records that could not be read.
	Unread   int64          `json:"unread_keys"`
	Replicas []ReplicaAudit `json:"replicas,omitempty"`
	AuditS   float64        `json:"audit_s"`
	History  *HistoryAudit  `json:"history,omitempty"`
}

// ReplicaAudit is what one member held of the audited records.
type ReplicaAudit struct {
	Node string `json:"node"`
	// Held counts records on the member. Stale counts those that remained older than acknowledged until the end of the
	// audit.
	Held       int64  `json:"held_keys"`
	Stale      int64  `json:"stale_copies"`
	Unexpected int64  `json:"unexpected_values"`
	Unread     int64  `json:"unread_keys"`
	Error      string `json:"error,omitempty"` // why it could not be read
}

// HistoryAudit is the linearizability check of a few records' whole history.
type HistoryAudit struct {
	Keys       int `json:"history_keys"`
	Operations int `json:"history_operations"`
	// Result is linearizable, violated, or undecided if the check ran out of time.
	Result string `json:"result"`
	// Violated lists the record and field of each violation.
	Violated []string `json:"violated,omitempty"`
}

const (
	Linearizable = "linearizable"
	Violated     = "violated"
	Undecided    = "undecided"
)

// AuditFinding is one line of audit.jsonl.
type AuditFinding struct {
	Kind  string `json:"kind"` // lost, stale, unexpected or unread
	Key   string `json:"key"`
	Field string `json:"field,omitempty"` // absent for the whole record
	// Node is the replica that was read; absent for a client's read.
	Node string `json:"node,omitempty"`
	// AcknowledgedS is when the expected write was acknowledged, in seconds since the measurement began; absent for a
	// record of the load.
	AcknowledgedS *float64 `json:"acknowledged_s,omitempty"`
	// Expected is the expected version. Saw is the version found, "missing", or the beginning of a value without a
	// version. Version 0 is the load's.
	Expected string `json:"expected,omitempty"`
	Saw      string `json:"saw"`
}

const (
	auditFile   = "audit.jsonl"
	historyFile = "history.html"
)

// Audit writes audit.jsonl, one finding per line.
func (t *TrialWriter) Audit(findings []AuditFinding) error {
	return t.writeFile(auditFile, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for _, f := range findings {
			if err := e.Encode(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// History writes history.html, a drawing of the checked operations.
func (t *TrialWriter) History(draw func(io.Writer) error) error {
	return t.writeFile(historyFile, draw)
}

// Assertion is one line of an experiment's assert, with its result.
type Assertion struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
	// Value is the measured value, in the notation of the line; "" if the trial has none.
	Value string `json:"value"`
	// Measured is the value as a number in seconds, bytes, operations per second or cores, or a share of 0 to 1,
	// according to Unit; absent if the trial has none. AtLeast marks a lower bound.
	Measured *float64 `json:"measured,omitempty"`
	// Unit is s, B, /s, cores, % for a share, or absent for a count.
	Unit    string `json:"unit,omitempty"`
	AtLeast bool   `json:"at_least,omitempty"`
}
