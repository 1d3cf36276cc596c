// Package live is what a run tells of itself while it goes on: the trial at hand, its cloud,
// its seconds and its events, for whoever looks. The run feeds it; onlookers, in this process
// or another, follow it through a socket in the run directory:
//
//	trial, runner ─► Feed ─ state, messages ─► socket (DIR/live.sock) ─► Client ─► dashboard
//	                  ▲                                                     │
//	                  └───────────────── an event to be fired ◄────────────┘
//
// Feeding never waits: an onlooker that does not keep up loses messages, not the run time,
// and is told the whole state anew.
package live

import (
	"time"

	"skerry/internal/evidence/warnings"
	"skerry/internal/record"
)

// State is all that an onlooker who comes late needs to know.
type State struct {
	Run   Run    `json:"run"`
	Trial *Trial `json:"trial,omitempty"` // nil before the first and after the last
	// Tasks are there where an engine runs the trials.
	Tasks *Tasks `json:"tasks,omitempty"`
	// Cloud is the trial's, nil until its lab is up.
	Cloud *Cloud `json:"cloud,omitempty"`
	// Seconds are those of the trial so far, warm-up included, the last keepSeconds at most.
	Seconds []record.Second `json:"seconds"`
	// Operations are the seconds of each kind of operation; Pools are those of each workload where several
	// run side by side, and Errors what did not end ok, by second, operation and class; the last
	// keepSeconds rows at most.
	Operations []record.OperationSecond `json:"operations,omitempty"`
	Pools      []record.PoolSecond      `json:"pools,omitempty"`
	Errors     []record.ErrorSecond     `json:"errors,omitempty"`
	// Totals are the operations of the measurement so far.
	Totals record.Outcomes `json:"totals"`
	// Nodes are what nodes used, by second and node, the last keepNodes at most.
	Nodes []record.NodeSecond `json:"nodes"`
	// Network is the last second of network.parquet, where an overlay routes.
	Network *record.NetworkSecond `json:"network,omitempty"`
	// Events are the trial's, each as its last line of events.jsonl tells it.
	Events []record.Event `json:"events"`
	// Results are the trials of this run that have ended, in that order.
	Results []Result `json:"results"`
	// Doubts are what is wrong with the run's trials so far, the gravest first.
	Doubts []warnings.Doubt `json:"doubts"`
}

// Run is what is run.
type Run struct {
	Name        string `json:"name"` // the directory's
	Experiment  string `json:"experiment"`
	Description string `json:"description,omitempty"`
	Planned     int    `json:"planned"` // trials
	Version     string `json:"version,omitempty"`
}

// Trial is the trial at hand.
type Trial struct {
	ID         int            `json:"id"`
	Number     int            `json:"number"` // how many of the plan have ended, and this one
	Repetition int            `json:"repetition"`
	Parameters map[string]any `json:"parameters"`
	Database   string         `json:"database"`
	Started    time.Time      `json:"started"`
	// Stage says in words what it is at.
	Stage string `json:"stage"`
	// Began is when the measurement did, nil before.
	Began *time.Time `json:"began,omitempty"`
	// LimitS is how long the measurement takes at most, 0 where only operations count.
	LimitS float64 `json:"limit_s,omitempty"`
	// Measuring tells whether events can be fired.
	Measuring bool `json:"measuring"`
}

// Cloud is a lab as it is.
type Cloud struct {
	Name  string `json:"name"`
	Sites []Site `json:"sites"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// Site is a place; Lat and Lon are degrees where Located.
type Site struct {
	Name    string  `json:"name"`
	Lat     float64 `json:"lat"`
	Lon     float64 `json:"lon"`
	Located bool    `json:"located"`
}

// Node is a machine of the lab. CPU is its quota in cores, 0 for none.
type Node struct {
	Name        string  `json:"name"`
	Site        string  `json:"site"`
	Role        string  `json:"role"`
	CPU         float64 `json:"cpu_cores,omitempty"`
	MemoryBytes int64   `json:"memory_bytes,omitempty"`
}

// Link is a link as it is set at present, and the median round trip that it was measured
// with before the workload began.
type Link struct {
	ID      string   `json:"id"`
	A       string   `json:"a"` // node
	B       string   `json:"b"`
	AB      Way      `json:"ab"`
	BA      Way      `json:"ba"`
	RTTMS   *float64 `json:"rtt_ms,omitempty"`
	Changed bool     `json:"changed,omitempty"` // it is not as it was when the measurement began
	// CarrierDown says that its devices are down, as if the cable was pulled out.
	CarrierDown bool `json:"carrier_down,omitempty"`
}

// Way is one direction of a link. Bandwidth is 0 where it is unlimited.
type Way struct {
	LatencyMS float64 `json:"latency_ms"`
	JitterMS  float64 `json:"jitter_ms,omitempty"`
	Loss      float64 `json:"loss,omitempty"` // share of packets
	Bandwidth int64   `json:"bps,omitempty"`
	Down      bool    `json:"down,omitempty"`
}

// Result is a trial that has ended.
type Result struct {
	ID      int     `json:"id"`
	State   string  `json:"state"`
	Error   string  `json:"error,omitempty"`
	Goodput float64 `json:"goodput_ops_s"`
	Verdict string  `json:"verdict,omitempty"`
	// Reasons are those of the verdict.
	Reasons    []string           `json:"reasons,omitempty"`
	Assertions []record.Assertion `json:"assertions,omitempty"`
}

// How much an onlooker who comes late is told of the past: an hour of seconds, five minutes
// of eight nodes, and of 1,000 nodes the last seconds.
const (
	keepSeconds = 3600
	keepNodes   = 4000
	keepEvents  = 2000
)

// trimRows bounds a list to its last n.
func trimRows[T any](list []T, n int) []T {
	if len(list) <= 2*n { // trimmed by halves, so that a row costs nothing on average
		return list
	}
	return append([]T(nil), list[len(list)-n:]...)
}

// Tasks are how the tasks of a run on an engine stand.
type Tasks struct {
	On string `json:"on"` // the engine
	// Counts of tasks: not handed over yet or waiting for a machine, running, with all their results.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
	// Trials whose result is suspect, and those that measured nothing.
	Suspect int `json:"suspect"`
	Failed  int `json:"failed"`
	// Lost counts the times that a task ended without its results and was handed over again, or given up.
	Lost int `json:"lost"`
	// LeftS is about how long the rest takes, 0 where nobody knows.
	LeftS float64 `json:"left_s,omitempty"`
	// At are the tasks that run, maxTasksAt at most; Troubles the last things that went wrong with others.
	At       []TaskAt  `json:"at"`
	Troubles []Trouble `json:"troubles"`
}

// TaskAt is a task that runs somewhere.
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
	Again bool      `json:"again"` // it was handed over again
}

// SetTasks tells how the tasks stand.
func (f *Feed) SetTasks(t Tasks) {
	f.publish(KindTasks, func(s *State) { s.Tasks = &t }, func(*State) any { return t })
}
