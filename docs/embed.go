// Package docs holds the documentation that the program prints itself.
package docs

import _ "embed"

// ExperimentSchema is the JSON Schema of experiment files.
//
//go:embed experiment.schema.json
var ExperimentSchema []byte
