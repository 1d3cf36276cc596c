// Package docs holds the documentation that the program prints itself.
package docs

import _ "embed"

// ExperimentSchema is the JSON Schema of experiment files.
//
//go:embed experiment.schema.json
var ExperimentSchema []byte

// SummarySchema is that of summary.json.
//
//go:embed summary.schema.json
var SummarySchema []byte

// MachinesSchema is that of machines files.
//
//go:embed machines.schema.json
var MachinesSchema []byte
