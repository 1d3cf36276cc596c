package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/run/executor"
	"skerry/internal/run/executor/registry"
	"skerry/internal/run/live"
)

// stateSchema versions engine/state.json.
const stateSchema = "skerry/engine/v1"

// State is engine/state.json: what was handed over and is not over. The sweep alone writes it;
// another one that goes on with the run reads it.
type State struct {
	Schema string `json:"schema"`
	// On and Options are what the sweep was started with.
	On      string           `json:"on"`
	Options registry.Options `json:"options,omitzero"`
	Token   string           `json:"token"`
	// Next is the number of the next submission.
	Next int                   `json:"next"`
	Open []executor.Submission `json:"open"`
	// Tasks are shown to onlookers.
	Tasks   live.Tasks `json:"tasks"`
	Changed time.Time  `json:"changed"`
}

// ErrNoEngine says that a run is not one on an engine.
var ErrNoEngine = errors.New("the run was not started on an engine")

func statePath(dir string) string { return filepath.Join(dir, executor.Folder, "state.json") }

// ReadState reads how a run stands with its engine; ErrNoEngine says that it has none.
func ReadState(dir string) (State, error) {
	var s State
	text, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNoEngine
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Schema != stateSchema {
		err = fmt.Errorf("its schema is %q in place of %q", s.Schema, stateSchema)
	}
	if err != nil {
		return s, fmt.Errorf("reading how the run stands with its engine: %w", err)
	}
	return s, nil
}

func (s *State) write(dir string) error {
	s.Changed = time.Now()
	err := atomicfile.File(statePath(dir), func(w io.Writer) error { return json.NewEncoder(w).Encode(s) })
	if err != nil {
		return fmt.Errorf("noting what was handed over: %w", err)
	}
	return nil
}
