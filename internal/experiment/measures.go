package experiment

import "skerry/internal/base/unit"

// Recovery is what recovery from an event is measured by (see recovery.md).
type Recovery struct {
	// Baseline is the time before an event that it is compared with.
	Baseline unit.Duration `yaml:"baseline" json:"baseline" jsonschema:"default=60s"`
	// Goodput is the share of the baseline's goodput that a second must reach.
	Goodput unit.Fraction `yaml:"goodput" json:"goodput" jsonschema:"default=90%"`
	// P99 is how many times the baseline's p99 a second may take.
	P99 float64 `yaml:"p99" json:"p99" jsonschema:"default=2,minimum=1"`
	// Hold is for how long seconds must be as before until it has recovered.
	Hold unit.Duration `yaml:"hold" json:"hold" jsonschema:"default=10s"`
	// SLA is the p99 above which a second violates the service level; left out, it is
	// p99 times the baseline's.
	SLA unit.Duration `yaml:"sla" json:"sla,omitempty"`
}

// Audit reads every acknowledged write back (see audit.md).
type Audit struct {
	// Enabled turns it on.
	Enabled bool `yaml:"enabled" json:"enabled"`
	// HistoryKeys is of how many records every operation is recorded and checked for
	// linearizability; 0 is none.
	HistoryKeys int `yaml:"history_keys" json:"history_keys" jsonschema:"default=8,minimum=0,maximum=1000"`
	// Settle is how long copies that are older than what was acknowledged may take to catch
	// up before they count.
	Settle unit.Duration `yaml:"settle" json:"settle" jsonschema:"default=10s"`
}

// Shorthand: "audit: true" is "audit: {enabled: true}".
func (Audit) Shorthand() string { return "enabled" }
