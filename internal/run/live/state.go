// Package live serves the state of a running experiment. The run publishes to a Feed; followers, in this
// process or another, read it through a socket in the run directory:
//
//	trial, runner ─► Feed ─ state, messages ─► socket (DIR/live.sock) ─► client ─► dashboard
//	                  ▲                                                     │
//	                  └─────────────────── events to fire ◄─────────────────┘
//
// Publishing never blocks. A follower that is too slow loses messages and receives the whole state again.
package live

import (
	"time"

	"skerry/internal/evidence/warnings"
	"skerry/internal/record"
)

// State is everything that a new follower needs.
type State struct {
	Run   Run    `json:"run"`
	Trial *Trial `json:"trial,omitempty"` // nil before the first and after the last
	// Tasks is set if an executor, or several lanes, run the trials.
	Tasks *Tasks `json:"tasks,omitempty"`
	// Cloud is the trial's; nil until its lab is up.
	Cloud *Cloud `json:"cloud,omitempty"`
	// Seconds are the last seconds of the trial, warm-up included, at most keepSeconds.
	Seconds []record.Second `json:"seconds"`
	// Operations, Pools and Errors are rows per second by operation, workload, and operation and error
	// class; the last keepSeconds rows. Pools is empty for a single workload.
	Operations []record.OperationSecond `json:"operations,omitempty"`
	Pools      []record.PoolSecond      `json:"pools,omitempty"`
	Errors     []record.ErrorSecond     `json:"errors,omitempty"`
	// Totals counts the operations of the measurement so far.
	Totals record.Outcomes `json:"totals"`
	// Nodes is the resource use by second and node, the last keepNodes rows.
	Nodes []record.NodeSecond `json:"nodes"`
	// Network is the last row of network.parquet.
	Network *record.NetworkSecond `json:"network,omitempty"`
	// Events of the trial, each as in its last line of events.jsonl.
	Events []record.Event `json:"events"`
	// Results of the ended trials, in the order of their end.
	Results []Result `json:"results"`
	// Doubts are the warnings about the run's trials, the most serious first.
	Doubts []warnings.Warning `json:"doubts"`
}

// Run identifies the run.
type Run struct {
	Name        string `json:"name"` // of the directory
	Experiment  string `json:"experiment"`
	Description string `json:"description,omitempty"`
	Planned     int    `json:"planned"` // number of trials
	Version     string `json:"version,omitempty"`
}

// Trial is the current trial.
type Trial struct {
	ID         int            `json:"id"`
	Number     int            `json:"number"` // ended trials of the plan, plus this one
	Repetition int            `json:"repetition"`
	Parameters map[string]any `json:"parameters"`
	Database   string         `json:"database"`
	Started    time.Time      `json:"started"`
	// Stage describes the current step.
	Stage string `json:"stage"`
	// Began is the start of the measurement, nil before.
	Began *time.Time `json:"began,omitempty"`
	// LimitS is the longest measurement, 0 if only operations limit it.
	LimitS float64 `json:"limit_s,omitempty"`
	// Measuring is true while events can be fired.
	Measuring bool `json:"measuring"`
}

// Cloud is the trial's lab.
type Cloud struct {
	Name  string `json:"name"`
	Sites []Site `json:"sites"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// Site is a site; Lat and Lon are degrees, valid if Located.
type Site struct {
	Name    string  `json:"name"`
	Lat     float64 `json:"lat"`
	Lon     float64 `json:"lon"`
	Located bool    `json:"located"`
}

// Node is a node of the lab. CPU is its quota in cores, 0 for none.
type Node struct {
	Name        string  `json:"name"`
	Site        string  `json:"site"`
	Role        string  `json:"role"`
	CPU         float64 `json:"cpu_cores,omitempty"`
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
}

// Link is the current state of a link, and the median round trip measured before the workload.
type Link struct {
	ID      string   `json:"id"`
	A       string   `json:"a"` // node
	B       string   `json:"b"`
	AB      Way      `json:"ab"`
	BA      Way      `json:"ba"`
	RTTMS   *float64 `json:"rtt_ms,omitempty"`
	Changed bool     `json:"changed,omitempty"` // differs from the start of the measurement
	// CarrierDown means that its devices are down, like an unplugged cable.
	CarrierDown bool `json:"carrier_down,omitempty"`
}

// Way is one direction of a link. Bandwidth is 0 if unlimited.
type Way struct {
	LatencyMS float64 `json:"latency_ms"`
	JitterMS  float64 `json:"jitter_ms,omitempty"`
	Loss      float64 `json:"loss,omitempty"` // share of packets
	Bandwidth int64   `json:"bps,omitempty"`
	Down      bool    `json:"down,omitempty"`
}

// Result is an ended trial.
type Result struct {
	ID      int     `json:"id"`
	State   string  `json:"state"`
	Error   string  `json:"error,omitempty"`
	Goodput float64 `json:"goodput_ops_s"`
	Verdict string  `json:"verdict,omitempty"`
	// Reasons of the verdict.
	Reasons    []string           `json:"reasons,omitempty"`
	Assertions []record.Assertion `json:"assertions,omitempty"`
}

// The history for new followers: an hour of seconds, or five minutes of eight nodes.
const (
	keepSeconds = 3600
	keepNodes   = 4000
	keepEvents  = 2000
)

// trimRows bounds a list to at least its last n rows. It trims at twice the length, so that the amortised
// cost is constant.
func trimRows[T any](list []T, n int) []T {
	if len(list) <= 2*n { // trimmed by halves, so that a row costs nothing on average
		return list
	}
	return append([]T(nil), list[len(list)-n:]...)
}

// Tasks is the state of the tasks of a run.
type Tasks struct {
	On string `json:"on"` // name of the executor
	// Waiting, Running and Done count tasks: not submitted or without a machine, running, and with all
	// results.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
	// Suspect and Failed count trials.
	Suspect int `json:"suspect"`
	Failed  int `json:"failed"`
	// Lost counts tasks that ended without results and were resubmitted or given up.
	Lost int `json:"lost"`
	// LeftS estimates the remaining seconds, 0 if unknown.
	LeftS float64 `json:"left_s,omitempty"`
	// At lists the running tasks, Troubles the last problems; both are bounded.
	At       []TaskAt  `json:"at"`
	Troubles []Trouble `json:"troubles"`
}

// TaskAt is a running task.
type TaskAt struct {
	Task   int       `json:"task"`
	Trials []int     `json:"trials"`
	Where  string    `json:"where"`
	Since  time.Time `json:"since"` // when it was first seen there
}

// Trouble is a task that ended without its results.
type Trouble struct {
	Task  int       `json:"task"`
	State string    `json:"state"` // cancelled, preempted, timed out, lost, failed
	Where string    `json:"where,omitempty"`
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
	Again bool      `json:"again"` // it was resubmitted
}

func (f *Feed) SetTasks(t Tasks) {
	f.publish(KindTasks, func(s *State) { s.Tasks = &t }, func(*State) any { return t })
}
