package experiment

import (
	"skerry/internal/base/unit"
	"skerry/internal/topology"
)

// Drift changes the links while a trial measures: exactly one of steps, trace and
// mobility. Time counts from the start of the measurement; during set-up and warm-up the
// links are as at 0s, except that a link which loses every packet then does so from the start of the measurement on.
type Drift struct {
	// Steps change all links at once, or some of them.
	Steps []Step `yaml:"steps" json:"steps,omitempty"`
	// Trace replays a CSV file (relative to this file): each row changes one direction of a
	// link. Columns are time, from, to (nodes or sites; empty for all) and any of latency
	// (one way), bandwidth and loss; an empty cell leaves that as it is. A column called
	// time_s or latency_ms has cells without units. A trace whose rows are all after the end of the trial is refused, as
	// are Unix time stamps; rows that a trial does not reach are noted.
	Trace string `yaml:"trace" json:"trace,omitempty" jsonschema:"example=trace.csv"`
	// Mobility moves sites: latency and bandwidth follow from how far apart they are.
	Mobility *topology.Mobility `yaml:"mobility" json:"mobility,omitempty"`
	// Every is how often the links are brought up to date.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=100ms"`
}

// Alternatives: links drift in one way.
func (Drift) Alternatives() [][]string { return [][]string{{"steps", "trace", "mobility"}} }

// Step is one change of links.
type Step struct {
	// At is when, after the measurement began.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Scale replaces the experiment's scale from here on.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// Links are what changes on single links; it is not multiplied by the scale. With a name it
	// is one of a pair's links, "A~B#1" for one that the topology gives no name; without, all of them.
	Links []topology.LinkSpec `yaml:"links" json:"links,omitempty"`
}
