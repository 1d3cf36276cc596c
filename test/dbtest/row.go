package dbtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skerry/internal/database"
)

// Row is a suite's result: a row of the matrix in docs/databases.md.
type Row struct {
	Database string `json:"database"` // "cassandra@4.1" if the test names a version
	Variant  string `json:"variant,omitempty"`
	Version  string `json:"version"`
	Nodes    int    `json:"nodes"`
	// Aspects maps a part of the suite to "pass", "fail", "skip", or "no" if the database does not claim it.
	Aspects map[string]string `json:"aspects"`
	// Figures are incidental times in seconds and rates in operations a second, no benchmark.
	Figures map[string]float64 `json:"figures,omitempty"`
	// Churn reports random joins and leaves; Accounts the rows written during a "halt" or a "kill".
	Churn    *ChurnReport           `json:"churn,omitempty"`
	Accounts map[string]WriteCounts `json:"accounts,omitempty"`

	mu sync.Mutex
}

func newRow(name string, in database.Installation, c Config) *Row {
	return &Row{Database: name, Variant: c.Variant, Version: in.Version, Nodes: c.Nodes,
		Aspects: make(map[string]string), Figures: make(map[string]float64), Accounts: make(map[string]WriteCounts)}
}

func (r *Row) recordAspect(t *testing.T, aspect string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t.Failed():
		r.Aspects[aspect] = "fail"
	case r.Aspects[aspect] == "no":
	case t.Skipped():
		r.Aspects[aspect] = "skip"
	default:
		r.Aspects[aspect] = "pass"
	}
}

func (r *Row) markUnclaimed(aspects ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range aspects {
		r.Aspects[a] = "no"
	}
}

func (r *Row) setFigure(figure string, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Figures[figure] = value
}

func (r *Row) setAccount(aspect string, a WriteCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Accounts[aspect] = a
}

// Name is the row's name in the matrix.
func (r *Row) Name() string {
	if r.Variant == "" {
		return r.Database
	}
	return r.Database + ", " + r.Variant
}

// publish emits the row as a test attribute and writes it to SKERRY_MATRIX, merged with an existing file.
func (r *Row) publish(t *testing.T) {
	dir := os.Getenv("SKERRY_MATRIX")
	name := filepath.Join(dir, strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(r.Name())+".json")
	if dir != "" {
		r.fillFromEarlier(t, name)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Errorf("writing the matrix's row: %v", err)
		return
	}
	t.Attr("matrix", string(text))
	if dir == "" {
		return
	}
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
		t.Errorf("writing the matrix's row: %v", err)
	}
}

// fillFromEarlier fills unreached parts from the row of an earlier run of the same version.
func (r *Row) fillFromEarlier(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	earlier := &Row{}
	if err := errors.Join(err, json.Unmarshal(text, earlier)); err != nil {
		t.Errorf("reading the matrix's row: %v", err)
		return
	}
	if earlier.Version != r.Version {
		return
	}
	fillMissing(r.Aspects, earlier.Aspects)
	fillMissing(r.Figures, earlier.Figures)
	fillMissing(r.Accounts, earlier.Accounts)
	if r.Churn == nil {
		r.Churn = earlier.Churn
	}
}

func fillMissing[V any](into, from map[string]V) {
	for key, value := range from {
		if _, there := into[key]; !there {
			into[key] = value
		}
	}
}
