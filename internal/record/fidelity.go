package record

// Fidelity is the evidence that the emulation was accurate.
type Fidelity struct {
	Engine string         `json:"engine"`
	Links  []LinkFidelity `json:"links"`
	// WorstRTTErrorMS is the largest |measured - set| of a link's median RTT.
	WorstRTTErrorMS float64 `json:"worst_rtt_error_ms"`
	// WorstBandwidthError is the largest relative error of a measured bandwidth.
	WorstBandwidthError float64 `json:"worst_bandwidth_error"`
	// EmulatorLateP99US is the lateness with which the emulator delivered packets during the measurement; negative if
	// the engine cannot report it.
	EmulatorLateP99US float64 `json:"emulator_late_p99_us"`
	EmulatorDrops     int64   `json:"emulator_drops"`
	// EventLateP99US is the lateness with which the experiment's events began.
	EventLateP99US float64 `json:"event_late_p99_us,omitempty"`
	// ClientCPU is the cores that the load driver used.
	ClientCPU float64 `json:"client_cpu_cores"`
	// ClientLateP99US is the lateness with which the driver sent operations.
	ClientLateP99US float64 `json:"client_late_p99_us"`
	HostCPU         float64 `json:"host_cpu_cores"`
	HostCPUMax      float64 `json:"host_cpu_cores_max_1s"`
	HostCores       int     `json:"host_cores"`
	StealShare      float64 `json:"steal_share"` // of the host's CPU time
	// OthersCPU is the mean number of cores that processes outside the run used; nil in runs of older versions, and if
	// unknown for the reason OthersUnknown.
	OthersCPU     *float64 `json:"others_cpu_cores,omitempty"`
	OthersUnknown string   `json:"others_not_known,omitempty"`
	// Machines are the machines of the lab, if it used a machines file. The host's figures are then totals over all
	// machines, and lateness is that of the worst one.
	Machines []MachineFidelity `json:"machines,omitempty"`
	// OwnCPU is the mean number of cores that the trial's own processes used; OwnMemory is the maximum memory of its
	// nodes.
	OwnCPU    float64 `json:"own_cpu_cores,omitempty"`
	OwnMemory int64   `json:"own_memory_bytes,omitempty"`
	// Account is what the emulator observed on links during the measurement; nil in runs of older versions.
	Account *LinkAccount `json:"account,omitempty"`
	// Stolen is the effect of CPU time stolen from the driver; nil in runs of older versions.
	Stolen *Stolen `json:"stolen,omitempty"`
}

// MachineFidelity describes one of several machines that ran a trial.
type MachineFidelity struct {
	Name   string   `json:"name"`
	Kernel string   `json:"kernel"`
	Nodes  []string `json:"nodes"`
	// CPU is the mean number of busy cores, out of Cores; StealShare is a share of the CPU time.
	CPU        float64 `json:"cpu_cores"`
	Cores      int     `json:"cores"`
	StealShare float64 `json:"steal_share"`
	// EmulatorLateP99US is the lateness of its emulator; negative if the engine cannot report it.
	EmulatorLateP99US float64 `json:"emulator_late_p99_us"`
	// The machine's clock was ClockAheadUS ahead of the controller's when the measurement began, plus or minus
	// ClockUncertainUS. It moved by ClockMovedUS during the measurement.
	ClockAheadUS     float64 `json:"clock_ahead_us"`
	ClockUncertainUS float64 `json:"clock_uncertain_us"`
	ClockMovedUS     float64 `json:"clock_moved_us"`
}

// Stolen compares a measurement with the rest that remains without the stretches in which another program had the
// driver's processor (evidence/verdict has the rules).
type Stolen struct {
	Share   float64 `json:"share"` // of the measurement that is marked
	MarkedS float64 `json:"marked_s"`
	Left    int64   `json:"left"` // operations that ended ok and neither began nor ended in a mark
	// The driver's lateness, 99th percentile: outside the marked stretches, and in the seconds in which the driver had
	// not saturated its cores.
	LateLeftP99US    float64 `json:"late_left_p99_us"`
	LateNotFullP99US float64 `json:"late_not_full_p99_us"`
	All              Figures `json:"all"`
	Without          Figures `json:"without"`
	// Moved is the largest relative change of these figures; MovedBy names the figure.
	Moved   float64 `json:"moved"`
	MovedBy string  `json:"moved_by,omitempty"`
	// OwnTrials is true if concurrent trials of the run had the processors: other programs and the hypervisor used
	// little.
	OwnTrials bool `json:"own_trials,omitempty"`
}

// Figures are the figures that a verdict covers; response times in microseconds.
type Figures struct {
	Goodput float64 `json:"goodput_ops_s"`
	P50     float64 `json:"p50_us"`
	P95     float64 `json:"p95_us"`
	P99     float64 `json:"p99_us"`
}

// LinkFidelity compares one link with its settings. Links are measured before the workload starts, so that the result
// shows the emulator and not a queue.
type LinkFidelity struct {
	ID       string  `json:"id"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	SetRTTMS float64 `json:"set_rtt_ms"`
	// Real marks a real link. It has no settings, so the set values and the error are 0. Seen is its behaviour during
	// the trial.
	Real bool      `json:"real,omitempty"`
	Seen *LinkSeen `json:"seen,omitempty"`
	// SetJitterMS is the jitter of both directions together; the median may deviate by it.
	SetJitterMS float64 `json:"set_jitter_ms,omitempty"`
	// Answered is true if any echo returned; otherwise the figures are 0.
	Answered   bool    `json:"answered"`
	RTTMS      float64 `json:"rtt_ms"` // median
	RTTP99MS   float64 `json:"rtt_p99_ms"`
	RTTErrorMS float64 `json:"rtt_error_ms"` // median - set
	// Bits per second of layer 3, 0 if unlimited or not measured; AB is From to To.
	SetABbps int64 `json:"set_ab_bps,omitempty"`
	ABbps    int64 `json:"ab_bps,omitempty"`
	SetBAbps int64 `json:"set_ba_bps,omitempty"`
	BAbps    int64 `json:"ba_bps,omitempty"`
	// TrainLost is true if no packet train arrived in a direction that loses nothing.
	TrainLost bool `json:"train_lost,omitempty"`
	// TrainDisturbed is true if the machine held up every train, so that a bandwidth is unknown.
	TrainDisturbed bool `json:"train_disturbed,omitempty"`
	// TrainStarved is true if a sender could not saturate a direction, so that a bandwidth is unknown.
	TrainStarved bool `json:"train_starved,omitempty"`
}

// LinkSeen describes a real link during the measurement, over all echoes.
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

// Loss is the share of lost echoes, 0 to 1.
func (s LinkSeen) Loss() float64 {
	if s.Sent == 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Sent)
}

// Verdict states whether the trial is valid.
type Verdict struct {
	State   string   `json:"state"` // valid | suspect
	Reasons []string `json:"reasons,omitempty"`
	// Kinds has the kind of each reason, in the same order (see evidence/verdict).
	Kinds []string `json:"kinds,omitempty"`
	// Notes are disturbances of the machine that did not change the figures.
	Notes []string `json:"notes,omitempty"`
}

const (
	Valid   = "valid"
	Suspect = "suspect"
)

// Laws that every packet of a link obeys.
const (
	LawEarly = "early" // handed over no sooner than latency and jitter allow
	LawLate  = "late"  // handed over no later than latency, jitter and the emulator's lateness explain
	LawFast  = "fast"  // left the queue no sooner than the rate allows
	LawSlow  = "slow"  // left the queue no later than the rate allows
)

// LinkAccount summarises what the emulator observed on links while a trial measured.
type LinkAccount struct {
	// NotMeasured is the reason if there is no account; no other field is set then.
	NotMeasured string `json:"not_measured,omitempty"`
	// Directions of links that carried packets, and the number of packets; a super-packet counts as one.
	Directions int64 `json:"directions,omitempty"`
	Packets    int64 `json:"packets,omitempty"`
	// Broken lists the violated laws, each with its worst case.
	Broken []LawViolation `json:"broken,omitempty"`
	// Jitter describes the direction that is farthest from its setting; nil if no direction could be judged.
	Jitter *Jitter `json:"jitter,omitempty"`
	// Changes of directions by events and drift.
	Changes *Changes `json:"changes,omitempty"`
}

// LawViolation describes the packets that broke a law in one direction, in the second T, or in the whole measurement if
// T is -1.
type LawViolation struct {
	Law     string  `json:"law"`
	Link    string  `json:"link"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	T       int64   `json:"t"`
	Packets int64   `json:"packets"` // that broke it
	Of      int64   `json:"of"`      // delivered
	WorstMS float64 `json:"worst_ms"`
	// Beyond is true if more packets than the tolerance broke the law; Times is the number of seconds of directions in
	// which that happened.
	Beyond bool  `json:"beyond,omitempty"`
	Times  int64 `json:"times,omitempty"`
	// Total is the number of packets of all directions that broke the law during the measurement.
	Total int64 `json:"total"`
}

// Jitter compares the spread of one direction's delays with its setting.
type Jitter struct {
	Link   string  `json:"link"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	MeanMS float64 `json:"mean_ms"` // mean delay less queue and latency; 0 is right
	// MeanLimitMS is the tolerance of the mean.
	MeanLimitMS float64 `json:"mean_limit_ms"`
	SDMS        float64 `json:"sd_ms"`
	SetSDMS     float64 `json:"set_sd_ms"`
	LeastSDMS   float64 `json:"least_sd_ms"`
	MostSDMS    float64 `json:"most_sd_ms"`
}

// Changes counts changed directions of links, by the observed outcome.
type Changes struct {
	Directions  int64 `json:"directions"`
	InEffect    int64 `json:"in_effect"`
	NoPacket    int64 `json:"no_packet"`
	Superseded  int64 `json:"superseded"`
	Unconfirmed int64 `json:"unconfirmed"`
	// Worst is the unconfirmed change that most packets crossed.
	Worst *Unconfirmed `json:"worst,omitempty"`
}

// Observed is what the emulator observed after one change of links.
type Observed struct {
	// Set is when the emulator had received all changes.
	Set Moment `json:"set"`
	// InEffect is when a packet had obeyed the last confirmed change; nil if none was confirmed.
	InEffect *Moment `json:"in_effect,omitempty"`
	// Directions that changed. A packet obeyed the change on Confirmed directions; no packet crossed NoPacket
	// directions; Superseded directions changed again before a packet obeyed. On Unconfirmed directions packets crossed
	// and none obeyed.
	Directions  int64         `json:"directions"`
	Confirmed   int64         `json:"confirmed"`
	NoPacket    int64         `json:"no_packet,omitempty"`
	Superseded  int64         `json:"superseded,omitempty"`
	Unconfirmed []Unconfirmed `json:"unconfirmed,omitempty"`
}

// Unconfirmed is a changed direction whose packets did not obey the change.
type Unconfirmed struct {
	Link    string  `json:"link"`
	Back    bool    `json:"back,omitempty"` // from its end B to A
	AtS     float64 `json:"at_s"`           // when it was set
	Packets int64   `json:"packets"`        // that crossed
}

func (c *Changes) Add(o Observed) {
	c.Directions += o.Directions
	c.InEffect += o.Confirmed
	c.NoPacket += o.NoPacket
	c.Superseded += o.Superseded
	c.Unconfirmed += int64(len(o.Unconfirmed))
	for _, u := range o.Unconfirmed {
		if c.Worst == nil || u.Packets > c.Worst.Packets {
			c.Worst = &u
		}
	}
}
