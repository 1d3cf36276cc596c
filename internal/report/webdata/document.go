// Package webdata defines the JSON documents of a run for web pages: one for the whole run, and one
// for each trial, which the page decodes on demand. The front end's types are generated from these
// types (make docs). A list is never null.
package webdata

import (
	"time"

	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/series"
)

// Schema versions the documents. Within a version, fields are only added.
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
	Command     []string           `json:"command"` // command line
	Again       string             `json:"again"`   // shell command that repeats the run
	File        record.File        `json:"file"`
	Experiment  string             `json:"experiment,omitempty"` // expanded experiment, JSON
	Seed        string             `json:"seed"`                 // uint64, too large for a JavaScript number
	Environment [][2]string        `json:"environment"`          // name and value
	Warnings    []string           `json:"warnings,omitempty"`
	Notes       []string           `json:"notes,omitempty"` // unreadable files
	Highlights  []report.Highlight `json:"highlights"`
	Findings    []string           `json:"findings"`
	Vary        []Axis             `json:"vary"`
	Fixed       []Axis             `json:"fixed"`
	Metrics     []Metric           `json:"metrics"`
	Operations  []string           `json:"operations"` // kinds of operation, the most common first
	Cells       []Cell             `json:"cells"`
	Trials      []Trial            `json:"trials"`
	Order       []int              `json:"order,omitempty"` // trial IDs in order of execution
}

// Axis is a parameter with its values, sorted.
type Axis struct {
	Name   string   `json:"name"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
}

// Metric is a figure that every trial has.
type Metric struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Unit is ops, us, bytes, share, s or cores.
	Unit string `json:"unit"`
	// Latency marks a metric of one kind of operation, which the reader selects.
	Latency bool `json:"latency,omitempty"`
}

// Cell is one combination of parameters with all of its repetitions.
type Cell struct {
	Label     string `json:"label"`
	Values    []int  `json:"values"` // for each axis of Vary, the index of its value
	Planned   int    `json:"planned"`
	Trials    []int  `json:"trials"` // IDs
	Weak      bool   `json:"weak,omitempty"`
	Operation string `json:"operation,omitempty"` // kind of operation behind the latency metrics
	Verdict   string `json:"verdict"`
	Bound     string `json:"bound,omitempty"`   // bottleneck of the throughput
	MadeBy    string `json:"made_by,omitempty"` // main cause of the 99th percentile
	// Estimates are means over repetitions, by metric.
	Estimates map[string]Estimate `json:"estimates"`
	// Latencies are the latency metrics of one kind of operation.
	Latencies []Latencies `json:"latencies"`
}

// Latencies are those of one kind of operation, by metric.
type Latencies struct {
	Operation string              `json:"operation"`
	Estimates map[string]Estimate `json:"estimates"`
}

// Estimate is a mean with the half-width of its 95 % confidence interval. Within is set if the
// interval is over the batches of the only repetition.
type Estimate struct {
	N      int           `json:"n"`
	Mean   series.Number `json:"mean"`
	SD     series.Number `json:"sd,omitempty"`
	Half   series.Number `json:"half,omitempty"`
	Within bool          `json:"within,omitempty"`
}

// Trial is the summary of one trial.
type Trial struct {
	ID         int            `json:"id"`
	Cell       int            `json:"cell"` // index in Run.Cells
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
	// LatencyBound explains the response times.
	LatencyBound *record.LatencyBound `json:"latency_bound,omitempty"`
	Outcomes     record.Outcomes      `json:"outcomes"`
	// Values by metric.
	Values     map[string]series.Number           `json:"values"`
	Half       series.Number                      `json:"goodput_half,omitempty"`
	Operations map[string]record.OperationSummary `json:"operations,omitempty"`
	Errors     []record.ErrorCount                `json:"errors,omitempty"`
	Events     []record.EventImpact               `json:"events,omitempty"`
	Audit      *record.Audit                      `json:"audit,omitempty"`
	Assertions []record.Assertion                 `json:"assertions,omitempty"`
	Fidelity   record.Fidelity                    `json:"fidelity"` // without links, which are in the Detail
	// Replaced are earlier attempts at this trial.
	Replaced []record.Replaced `json:"replaced,omitempty"`
	// Detail is the document of a trial. All series of one struct have the same length.
	Detail bool `json:"detail"`
}

// Detail is the document of a trial. All series of one struct are of one length.
type Detail struct {
	Schema   string           `json:"schema"`
	ID       int              `json:"id"`
	Timeline *series.Timeline `json:"timeline,omitempty"`
	// Pools is the goodput by workload. Errors are unsuccessful operations by class.
	Pools   *series.Rates   `json:"pools,omitempty"`
	Errors  *series.Rates   `json:"errors,omitempty"`
	Nodes   *series.Nodes   `json:"nodes,omitempty"`
	Network *series.Network `json:"network,omitempty"`
	Bands   []series.Band   `json:"bands,omitempty"`
	// Operations and Probes hold the 95th percentile by kind of operation.
	Operations *series.Operations `json:"operations,omitempty"`
	Probes     *series.Probes     `json:"probes,omitempty"`
	Curves     []series.Curve     `json:"curves,omitempty"`
	Heat       *series.Heat       `json:"heat,omitempty"`
	// Traffic counts bytes between nodes: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]].
	Traffic *Traffic `json:"traffic,omitempty"`
	// Cloud is the map of sites, nodes and links.
	Cloud *Cloud `json:"cloud,omitempty"`
	// Links compare configured with measured round trips.
	Links []record.LinkFidelity `json:"links,omitempty"`
	Notes []string              `json:"notes,omitempty"` // unreadable files
}

// Traffic is bytes from node to node: Nodes[From[i]] sent Bytes[i] to Nodes[To[i]].
type Traffic struct {
	Nodes []string `json:"nodes"`
	From  []int    `json:"from"`
	To    []int    `json:"to"`
	Bytes []int64  `json:"bytes"`
	// Left counts omitted pairs with less traffic.
	Left int `json:"left,omitempty"`
}

// Cloud is where nodes stand and what links them.
type Cloud struct {
	Sites []Site      `json:"sites"`
	Nodes []Node      `json:"nodes"`
	Links []CloudLink `json:"links"`
	Left  int         `json:"left,omitempty"` // number of omitted links
}

// Site is a location. Lat and Lon are degrees, valid if Located.
type Site struct {
	Name    string        `json:"name"`
	Lat     series.Number `json:"lat,omitempty"`
	Lon     series.Number `json:"lon,omitempty"`
	Located bool          `json:"located,omitempty"`
}

// Node is located at Sites[Site].
type Node struct {
	Name string `json:"name"`
	Site int    `json:"site"`
	Role string `json:"role"`
}

// CloudLink joins Nodes[A] and Nodes[B]. It has the initial round trip in milliseconds and the
// smaller bandwidth in bit/s, 0 for unlimited.
type CloudLink struct {
	ID    string        `json:"id"`
	A     int           `json:"a"`
	B     int           `json:"b"`
	RTTMS series.Number `json:"rtt_ms"`
	BPS   int64         `json:"bps,omitempty"`
}

const goodput = "goodput"

var metrics = []Metric{
	{ID: goodput, Label: "Goodput", Unit: "ops"},
	{ID: "throughput", Label: "Throughput", Unit: "ops"},
	{ID: "mean", Label: "Latency, mean", Unit: "us", Latency: true},
	{ID: "p50", Label: "Latency, median", Unit: "us", Latency: true},
	{ID: "p95", Label: "Latency, p95", Unit: "us", Latency: true},
	{ID: "p99", Label: "Latency, p99", Unit: "us", Latency: true},
	{ID: "p999", Label: "Latency, p99.9", Unit: "us", Latency: true},
	{ID: "errors", Label: "Unsuccessful operations", Unit: "share"},
	{ID: "traffic", Label: "Bytes transferred", Unit: "bytes"},
	{ID: "traffic_op", Label: "Bytes transferred per operation", Unit: "bytes"},
	{ID: "recover", Label: "Slowest recovery", Unit: "s"},
	{ID: "setup", Label: "Time to set up", Unit: "s"},
	{ID: "host_cpu", Label: "CPU of the whole machine", Unit: "cores"},
}
