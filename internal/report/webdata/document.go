// Package webdata is a run as the pages of the front end read it: one document that tells of
// the whole run, and one for each trial that is read when the trial is looked at. What charts of
// a trial draw is of package series. The front end's types are made from those here (make docs):
// a list is never null.
package webdata

import (
	"time"

	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/series"
)

// Schema versions the documents. Within a version fields are only added.
const Schema = "skerry/web/v1"

// Run is the document of a run.
type Run struct {
	Schema      string             `json:"schema"`
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Directory   string             `json:"directory"` // its name
	State       string             `json:"state"`     // how many trials ended how
	Unfinished  string             `json:"unfinished,omitempty"`
	Running     bool               `json:"running,omitempty"`
	Tally       report.Tally       `json:"tally"`
	Started     time.Time          `json:"started"`
	Finished    time.Time          `json:"finished,omitzero"`
	Command     []string           `json:"command"` // as it was given
	Again       string             `json:"again"`   // a shell's line that runs it again
	File        record.File        `json:"file"`
	Experiment  string             `json:"experiment,omitempty"` // as expanded, JSON
	Seed        string             `json:"seed"`                 // a uint64, which JavaScript's numbers cannot hold
	Environment [][2]string        `json:"environment"`          // name and value
	Warnings    []string           `json:"warnings,omitempty"`
	Notes       []string           `json:"notes,omitempty"` // what could not be read
	Highlights  []report.Highlight `json:"highlights"`
	Findings    []string           `json:"findings"`
	Vary        []Axis             `json:"vary"`
	Fixed       []Axis             `json:"fixed"`
	Metrics     []Metric           `json:"metrics"`
	Operations  []string           `json:"operations"` // kinds that some cell has, the most common first
	Cells       []Cell             `json:"cells"`
	Trials      []Trial            `json:"trials"`
	Order       []int              `json:"order,omitempty"` // of the trials, as they were run
}

// Axis is a parameter and its values in order.
type Axis struct {
	Name   string   `json:"name"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
}

// Metric is a figure that every trial has.
type Metric struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Unit names how it is written: ops, us, bytes, share, s, cores.
	Unit string `json:"unit"`
	// Better is "higher", "lower" or "".
	Better string `json:"better,omitempty"`
	// Latency says that it is of one kind of operation, which a reader picks.
	Latency bool `json:"latency,omitempty"`
}

// Cell is one combination of parameters with all of its repetitions.
type Cell struct {
	Label     string `json:"label"`
	Values    []int  `json:"values"` // of each varying parameter the place of its value
	Planned   int    `json:"planned"`
	Trials    []int  `json:"trials"` // IDs
	Weak      bool   `json:"weak,omitempty"`
	Operation string `json:"operation,omitempty"` // whose latency it is
	Verdict   string `json:"verdict"`
	Bound     string `json:"bound,omitempty"`   // what bound its throughput
	MadeBy    string `json:"made_by,omitempty"` // what made its 99th percentile
	// Estimates by metric, over repetitions.
	Estimates map[string]Estimate `json:"estimates"`
	// Latencies are the latency metrics of each kind of operation, the leading one first.
	Latencies []Latencies `json:"latencies"`
}

// Latencies are those of one kind of operation, by metric.
type Latencies struct {
	Operation string              `json:"operation"`
	Estimates map[string]Estimate `json:"estimates"`
}

// Estimate is a mean with the half-width of its 95 % confidence interval. Within says that
// the interval is over the batches of the only repetition.
type Estimate struct {
	N      int           `json:"n"`
	Mean   series.Number `json:"mean"`
	SD     series.Number `json:"sd,omitempty"`
	Half   series.Number `json:"half,omitempty"`
	Within bool          `json:"within,omitempty"`
}

// Trial is one trial in short.
type Trial struct {
	ID         int            `json:"id"`
	Cell       int            `json:"cell"` // place among the cells
	Repetition int            `json:"repetition"`
	Name       string         `json:"name"`
	State      string         `json:"state"`
	Error      string         `json:"error,omitempty"`
	Stopped    string         `json:"stopped,omitempty"`
	DurationS  series.Number  `json:"duration_s"`
	WarmupS    series.Number  `json:"warmup_s"`
	SetupS     series.Number  `json:"setup_s"`
	Verdict    record.Verdict `json:"verdict"`
	Bound      *record.Bound  `json:"bound,omitempty"`
	// LatencyBound is what made its response times.
	LatencyBound *record.LatencyBound `json:"latency_bound,omitempty"`
	Outcomes     record.Outcomes      `json:"outcomes"`
	Retries      int64                `json:"retries,omitempty"`
	// Values by metric.
	Values     map[string]series.Number           `json:"values"`
	Half       series.Number                      `json:"goodput_half,omitempty"`
	Operations map[string]record.OperationSummary `json:"operations,omitempty"`
	Errors     []record.ErrorCount                `json:"errors,omitempty"`
	Events     []record.EventImpact               `json:"events,omitempty"`
	Audit      *record.Audit                      `json:"audit,omitempty"`
	Assertions []record.Assertion                 `json:"assertions,omitempty"`
	Fidelity   record.Fidelity                    `json:"fidelity"` // its links stand in the Detail
	// Replaced are the attempts that this one stands in for.
	Replaced []record.Replaced `json:"replaced,omitempty"`
	// Detail says that the trial has a document of its own.
	Detail bool `json:"detail"`
}

// Detail is the document of a trial. All series of one struct are of one length.
type Detail struct {
	Schema   string           `json:"schema"`
	ID       int              `json:"id"`
	Timeline *series.Timeline `json:"timeline,omitempty"`
	// Pools are the goodputs of workloads side by side, Errors what did not end ok, by class.
	Pools   *series.Rates   `json:"pools,omitempty"`
	Errors  *series.Rates   `json:"errors,omitempty"`
	Nodes   *series.Nodes   `json:"nodes,omitempty"`
	Network *series.Network `json:"network,omitempty"`
	Bands   []series.Band   `json:"bands,omitempty"`
	// Operations and Probes tell the 95th percentile by kind of operation.
	Operations *series.Operations `json:"operations,omitempty"`
	Probes     *series.Probes     `json:"probes,omitempty"`
	Curves     []series.Curve     `json:"curves,omitempty"`
	Heat       *series.Heat       `json:"heat,omitempty"`
	Traffic    *Traffic           `json:"traffic,omitempty"`
	Cloud      *Cloud             `json:"cloud,omitempty"`
	// Links are set against measured.
	Links []record.LinkFidelity `json:"links,omitempty"`
	Notes []string              `json:"notes,omitempty"` // what could not be read
}

// Traffic is bytes from node to node: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]].
type Traffic struct {
	Nodes []string `json:"nodes"`
	From  []int    `json:"from"`
	To    []int    `json:"to"`
	Bytes []int64  `json:"bytes"`
	// Left counts pairs that are left out since others exchanged more.
	Left int `json:"left,omitempty"`
}

// Cloud is where nodes stand and what links them.
type Cloud struct {
	Sites []Site      `json:"sites"`
	Nodes []Node      `json:"nodes"`
	Links []CloudLink `json:"links"`
	Left  int         `json:"left,omitempty"` // links that are left out
}

// Site is a place; Lat and Lon are degrees where Located.
type Site struct {
	Name    string        `json:"name"`
	Lat     series.Number `json:"lat,omitempty"`
	Lon     series.Number `json:"lon,omitempty"`
	Located bool          `json:"located,omitempty"`
}

// Node stands at Sites[Site].
type Node struct {
	Name string `json:"name"`
	Site int    `json:"site"`
	Role string `json:"role"`
}

// CloudLink joins Nodes[A] and Nodes[B]: round trip in milliseconds and the smaller bandwidth
// in bits a second, 0 for none, as set before any event.
type CloudLink struct {
	ID    string        `json:"id"`
	A     int           `json:"a"`
	B     int           `json:"b"`
	RTTMS series.Number `json:"rtt_ms"`
	BPS   int64         `json:"bps,omitempty"`
}

const goodput = "goodput"

// metrics are what trials are compared by.
var metrics = []Metric{
	{ID: goodput, Label: "Goodput", Unit: "ops", Better: "higher"},
	{ID: "throughput", Label: "Throughput", Unit: "ops", Better: "higher"},
	{ID: "mean", Label: "Latency, mean", Unit: "us", Better: "lower", Latency: true},
	{ID: "p50", Label: "Latency, median", Unit: "us", Better: "lower", Latency: true},
	{ID: "p95", Label: "Latency, p95", Unit: "us", Better: "lower", Latency: true},
	{ID: "p99", Label: "Latency, p99", Unit: "us", Better: "lower", Latency: true},
	{ID: "p999", Label: "Latency, p99.9", Unit: "us", Better: "lower", Latency: true},
	{ID: "errors", Label: "Operations that did not end ok", Unit: "share", Better: "lower"},
	{ID: "traffic", Label: "Bytes transferred", Unit: "bytes", Better: "lower"},
	{ID: "traffic_op", Label: "Bytes transferred for each operation", Unit: "bytes", Better: "lower"},
	{ID: "recover", Label: "Slowest recovery", Unit: "s", Better: "lower"},
	{ID: "setup", Label: "Time to set up", Unit: "s"},
	{ID: "host_cpu", Label: "CPU of the whole machine", Unit: "cores"},
}
