// Package record is the run directory: what a run writes as it goes and everything
// that reads it later. Its files are a user's data: documented in docs/run-directory.md,
// versioned by their schema field, and complete for every finished trial whatever
// happened afterwards.
package record

import "time"

// SummarySchema versions summary.json.
const SummarySchema = "skerry/summary/v1"

// Summary is summary.json: one object a trial.
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
	// State is ok, failed (it did not measure anything; Error says why) or interrupted.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Stopped says what ended the measurement: operations, time, confidence, error.
	Stopped   string  `json:"stopped,omitempty"`
	DurationS float64 `json:"duration_s"` // measured time, warm-up left out
	WarmupS   float64 `json:"warmup_s"`
	SetupS    float64 `json:"setup_s"` // lab, cluster and load
	// Beside is how many other trials of the run ran at the same time, at the most.
	Concurrent int `json:"beside,omitempty"`
	// ClusterOf is the trial whose lab and cluster this one ran on, 0 for its own.
	ClusterOf int `json:"cluster_of,omitempty"`
	// Throughput counts operations that ended, goodput those that ended ok.
	Throughput float64 `json:"throughput_ops_s"`
	Goodput    float64 `json:"goodput_ops_s"`
	// Interval is the half-width of the 95 % confidence interval of the goodput
	// over this trial's batch means; Batches how many there were.
	Interval float64  `json:"goodput_ci95_ops_s"`
	Batches  int      `json:"goodput_batches"`
	Outcomes Outcomes `json:"outcomes"`
	// Retries of clients, never counted as operations of their own.
	Retries    int64                       `json:"retries,omitempty"`
	Errors     []ErrorCount                `json:"errors,omitempty"`
	Operations map[string]OperationSummary `json:"operations"` // READ, UPDATE, ...
	Traffic    Traffic                     `json:"traffic"`
	// Pools are the workloads where several ran side by side. The figures above are of all of them
	// together, and operations are called by the pool: readers.READ.
	Pools []Pool `json:"pools,omitempty"`
	// Keys are what the keys of a zipfian workload that inserts were drawn for; nil for other workloads.
	Keys *Keys `json:"keys,omitempty"`
	// Load is how the table was loaded; nil in runs of older versions.
	Load *Load `json:"load,omitempty"`
	// Events are what happened during the measurement, each with its recovery.
	Events []EventImpact `json:"events,omitempty"`
	// Probes are the short jobs beside the workload, in order, where the experiment asked
	// for them.
	Probes []Probe `json:"probes,omitempty"`
	// Audit is there where the experiment asked for it.
	Audit      *Audit      `json:"audit,omitempty"`
	Assertions []Assertion `json:"assertions,omitempty"`
	// Bound is what limited the throughput; nil in runs of older versions.
	Bound *Bound `json:"bound,omitempty"`
	// LatencyBound is what made the response times; nil in runs of older versions.
	LatencyBound *LatencyBound `json:"latency_bound,omitempty"`
	Fidelity     Fidelity      `json:"fidelity"`
	Verdict      Verdict       `json:"verdict"`
	// Machine is where it was measured; nil in runs of older versions, and where no lab came up.
	Machine *TrialMachine `json:"machine,omitempty"`
	// Attempt names the attempt that this is, where several places may have tried the trial.
	Attempt string `json:"attempt,omitempty"`
	// Replaced lists earlier attempts that measured and that this one stands in for, the first
	// one first.
	Replaced []Replaced `json:"replaced,omitempty"`
}

// SteadyInterval is the half-width of the goodput's interval over the trial's own batches, and whether it means anything, else 0: batches
// tell how sure a mean is only while nothing happens that changes it.
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
	// Target in operations a second, 0 for none.
	Target     float64  `json:"target_ops_s,omitempty"`
	DurationS  float64  `json:"duration_s"`
	Throughput float64  `json:"throughput_ops_s"`
	Goodput    float64  `json:"goodput_ops_s"`
	Interval   float64  `json:"goodput_ci95_ops_s"` // as the trial's
	Batches    int      `json:"goodput_batches"`
	Outcomes   Outcomes `json:"outcomes"`
	// All is all operations of the pool as one kind; each kind is among the trial's operations.
	All             OperationSummary `json:"all"`
	ClientCPU       float64          `json:"client_cpu_cores"`
	ClientLateP99US float64          `json:"client_late_p99_us"`
	Bound           Bound            `json:"bound"`
}

// Load is how the table was loaded, at the experiment's setup_scale: it is no part of the measurement.
type Load struct {
	Records   int64            `json:"records"`
	DurationS float64          `json:"duration_s"`
	Rate      float64          `json:"records_s"`
	Threads   int              `json:"threads"`
	Batch     int              `json:"batch_records,omitempty"` // records a request at the most, where several may go in one
	Insert    OperationSummary `json:"insert"`                  // each record has its request's latency
	Retries   int64            `json:"retries,omitempty"`
	Errors    []ErrorCount     `json:"errors,omitempty"`
}

// Bound says what limited a trial's throughput, with the evidence (evidence/bound has the rules).
type Bound struct {
	// By is target, client, machine, node, bandwidth, distance or database.
	By   string `json:"by"`
	What string `json:"what,omitempty"` // the node, or FROM~TO of the link
	Text string `json:"text"`
	// Waiting is how many operations were under way on average: throughput times latency.
	Waiting     float64 `json:"waiting"`
	LatencyMS   float64 `json:"latency_ms"`    // mean of all operations
	RoundTripMS float64 `json:"round_trip_ms"` // of the client, by what it sent where
	// Shares of what there was: the machine's and the client's cores, those of the busiest node, and
	// the fullest direction of a link.
	MachineShare float64 `json:"machine_share"`
	ClientShare  float64 `json:"client_share"`
	NodeShare    float64 `json:"node_share"`
	LinkShare    float64 `json:"link_share"`
}

// LatencyBound says what made the median and the 99th percentile of the response time of all operations.
type LatencyBound struct {
	P50 LatencyCause `json:"p50"`
	P99 LatencyCause `json:"p99"`
}

// LatencyCause says what made a percentile of the response time, with the evidence (evidence/bound has the rules).
type LatencyCause struct {
	// By is distance, machine (its processors, for which servers waited), client (the driver waited for a processor),
	// node (quotas), disk, queue or database.
	By   string `json:"by"`
	What string `json:"what,omitempty"` // FROM~TO of the link
	Text string `json:"text"`
	// OfMachine says that processors or the disk of the machine made it, and not the database or the emulated cloud.
	OfMachine bool `json:"of_machine,omitempty"`
	// LatencyMS is the percentile; the others are what each of the waits accounts for in it. They may overlap, and
	// their sum may be more than the whole.
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

// Trial states.
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

// Latency is the response time, or where a closed loop without a target recorded none, the
// service time.
func (s OperationSummary) Latency() Latency {
	if s.Response.Max > 0 {
		return s.Response
	}
	return s.Service
}

// Probe is one short job.
type Probe struct {
	Pool       string                      `json:"pool,omitempty"` // the workload that it is of, where there are several
	StartS     float64                     `json:"start_s"`        // its first operation, seconds of the measurement
	DurationS  float64                     `json:"duration_s"`
	Operations map[string]OperationSummary `json:"operations"` // READ, UPDATE, ...
	Error      string                      `json:"error,omitempty"`
}

// Latency of the operations that ended ok, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Traffic is what crossed the links during the measurement: layer-3 bytes.
type Traffic struct {
	TotalBytes int64 `json:"total_bytes"`
	// DataBytes leaves out the links of the client.
	DataBytes int64         `json:"data_bytes"`
	Pairs     []PairTraffic `json:"pairs"`
}

// PairTraffic is one direction between two nodes.
type PairTraffic struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// Fidelity is the evidence that the emulation was true.
type Fidelity struct {
	Engine string         `json:"engine"`
	Links  []LinkFidelity `json:"links"`
	// WorstRTTErrorMS is the largest |measured - set| of a link's median RTT.
	WorstRTTErrorMS float64 `json:"worst_rtt_error_ms"`
	// WorstBandwidthError is the largest relative error of a measured bandwidth.
	WorstBandwidthError float64 `json:"worst_bandwidth_error"`
	// EmulatorLateP99US: how late the emulator handed packets over while the trial
	// measured; negative when the engine cannot know.
	EmulatorLateP99US float64 `json:"emulator_late_p99_us"`
	EmulatorDrops     int64   `json:"emulator_drops"`
	// EventLateP99US: how late the experiment's events began after they were due.
	EventLateP99US float64 `json:"event_late_p99_us,omitempty"`
	// CPU in cores: of the load driver, and of everything on the machine (out of HostCores).
	ClientCPU float64 `json:"client_cpu_cores"`
	// ClientLateP99US: how late the driver sent operations after it meant to.
	ClientLateP99US float64 `json:"client_late_p99_us"`
	HostCPU         float64 `json:"host_cpu_cores"`
	HostCPUMax      float64 `json:"host_cpu_cores_max_1s"`
	HostCores       int     `json:"host_cores"`
	StealShare      float64 `json:"steal_share"` // of the host's CPU time
	// OthersCPU is the cores that processes used, on average, that are neither the trial's nor of another trial of the
	// run; nil where that is not known, for the reason OthersUnknown, and in runs of older versions.
	OthersCPU     *float64 `json:"others_cpu_cores,omitempty"`
	OthersUnknown string   `json:"others_not_known,omitempty"`
	// Machines are those that the lab stood on, where it stood on machines of a machines file; the
	// figures of host are of them together then, and lateness of the worst.
	Machines []MachineFidelity `json:"machines,omitempty"`
	// OwnCPU is the cores that the trial's own processes used on average, OwnMemory the bytes of its
	// nodes at the most.
	OwnCPU    float64 `json:"own_cpu_cores,omitempty"`
	OwnMemory int64   `json:"own_memory_bytes,omitempty"`
	// Account is what the emulator observed on links while the trial measured; nil in runs of older
	// versions.
	Account *Account `json:"account,omitempty"`
	// Stolen is what processors that were taken from the driver could have changed; nil in runs
	// of older versions.
	Stolen *Stolen `json:"stolen,omitempty"`
}

// MachineFidelity is what one of several machines had to do with a trial.
type MachineFidelity struct {
	Name   string   `json:"name"`
	Kernel string   `json:"kernel"`
	Nodes  []string `json:"nodes"`
	// CPU in cores of everything there, on average, out of Cores; StealShare of its CPU time.
	CPU        float64 `json:"cpu_cores"`
	Cores      int     `json:"cores"`
	StealShare float64 `json:"steal_share"`
	// EmulatorLateP99US: how late its emulator handed packets over; negative where it cannot know.
	EmulatorLateP99US float64 `json:"emulator_late_p99_us"`
	// Its clock was so far ahead of the controller's when the measurement began, within the
	// uncertainty either way, and moved by so much until its end.
	ClockAheadUS     float64 `json:"clock_ahead_us"`
	ClockUncertainUS float64 `json:"clock_uncertain_us"`
	ClockMovedUS     float64 `json:"clock_moved_us"`
}

// Stolen compares a measurement with what is left of it without the stretches in which the
// driver could not have a processor that something else had (evidence/stolen has the rules).
type Stolen struct {
	Share   float64 `json:"share"` // of the measurement that is marked
	MarkedS float64 `json:"marked_s"`
	Left    int64   `json:"left"` // operations that ended ok and neither began nor ended in a mark
	// The driver's lateness, 99th percentile: outside of the marks, and in the seconds in which it
	// had not used its cores up.
	LateLeftP99US    float64 `json:"late_left_p99_us"`
	LateNotFullP99US float64 `json:"late_not_full_p99_us"`
	All              Figures `json:"all"`
	Without          Figures `json:"without"`
	// Moved is the largest relative change of these figures, MovedBy which one it is.
	Moved   float64 `json:"moved"`
	MovedBy string  `json:"moved_by,omitempty"`
	// OwnTrials says that other trials of the run took the processors, which ran at the same time: neither other programs
	// nor the hypervisor used much.
	OwnTrials bool `json:"own_trials,omitempty"`
}

// Figures are those that a verdict is about; response times in microseconds.
type Figures struct {
	Goodput float64 `json:"goodput_ops_s"`
	P50     float64 `json:"p50_us"`
	P95     float64 `json:"p95_us"`
	P99     float64 `json:"p99_us"`
}

// LinkFidelity compares one link with what was asked of it. Measurement is made
// before the workload starts, so that it sees the emulator and not the queue.
type LinkFidelity struct {
	ID       string  `json:"id"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	SetRTTMS float64 `json:"set_rtt_ms"`
	// Real says that the link was left as it is: nothing was asked of it, so that what is set is 0 and there is no
	// error. Seen is what it was while the trial measured.
	Real bool      `json:"real,omitempty"`
	Seen *LinkSeen `json:"seen,omitempty"`
	// SetJitterMS is the jitter of both directions together: what the median may stray by.
	SetJitterMS float64 `json:"set_jitter_ms,omitempty"`
	// Answered says whether any echo came back; without one the figures are 0.
	Answered   bool    `json:"answered"`
	RTTMS      float64 `json:"rtt_ms"` // median
	RTTP99MS   float64 `json:"rtt_p99_ms"`
	RTTErrorMS float64 `json:"rtt_error_ms"` // median - set
	// Bits per second of layer 3, 0 where unlimited or not measured; AB is From to To.
	SetABbps int64 `json:"set_ab_bps,omitempty"`
	ABbps    int64 `json:"ab_bps,omitempty"`
	SetBAbps int64 `json:"set_ba_bps,omitempty"`
	BAbps    int64 `json:"ba_bps,omitempty"`
	// TrainLost says that of a direction that loses nothing no packet train arrived.
	TrainLost bool `json:"train_lost,omitempty"`
	// TrainDisturbed says that the machine held up every train, so that a bandwidth is not known.
	TrainDisturbed bool `json:"train_disturbed,omitempty"`
	// TrainStarved says that the sender of a direction could not keep it busy, so that a bandwidth is not known.
	TrainStarved bool `json:"train_starved,omitempty"`
}

// LinkSeen is what a real link was while the trial measured, over all echoes.
type LinkSeen struct {
	Sent  int64   `json:"sent"`
	Lost  int64   `json:"lost"`
	MinMS float64 `json:"rtt_min_ms"`
	// Median, 99th percentile and maximum of the round trips; JitterMS is their standard deviation.
	MedianMS float64 `json:"rtt_median_ms"`
	P99MS    float64 `json:"rtt_p99_ms"`
	MaxMS    float64 `json:"rtt_max_ms"`
	JitterMS float64 `json:"jitter_ms"`
}

// Loss is the share of echoes that were lost, 0 to 1.
func (s LinkSeen) Loss() float64 {
	if s.Sent == 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Sent)
}

// Verdict says whether the trial can be believed.
type Verdict struct {
	State   string   `json:"state"` // valid | suspect
	Reasons []string `json:"reasons,omitempty"`
	// Kinds names the kind of each reason, in the same order (evidence/verdict has them).
	Kinds []string `json:"kinds,omitempty"`
	// Notes are what disturbed the machine and changed nothing.
	Notes []string `json:"notes,omitempty"`
}

// Verdict states.
const (
	Valid   = "valid"
	Suspect = "suspect"
)
