package experiment

import (
	"skerry/internal/topology"
	"skerry/internal/unit"
)

// Drift changes the links while a trial measures: exactly one of steps, trace and
// mobility. Time counts from the begin of the measurement; during the warm-up the links
// are as at 0s.
type Drift struct {
	// Steps change all links at once, or some of them.
	Steps []Step `yaml:"steps" json:"steps,omitempty"`
	// Trace replays a CSV file (relative to this file) with the columns time, from, to and
	// any of latency (one way), rtt, bandwidth, loss.
	Trace string `yaml:"trace" json:"trace,omitempty" jsonschema:"example=trace.csv"`
	// Mobility moves sites: latency and bandwidth follow from how far apart they are.
	Mobility *topology.Mobility `yaml:"mobility" json:"mobility,omitempty"`
	// Every is how often links follow mobility.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"default=100ms"`
}

// Step is one change of links.
type Step struct {
	// At is when, after the measurement began.
	At unit.Duration `yaml:"at" json:"at" jsonschema:"required"`
	// Scale replaces the experiment's scale from here on.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
	// Links are what changes on single links; it is not multiplied by the scale.
	Links []topology.LinkSpec `yaml:"links" json:"links,omitempty"`
}
