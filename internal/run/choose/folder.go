package choose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
)

// StateSchema is the version of choice.json.
const StateSchema = "skerry/choice/v1"

const (
	stateFile = "choice.json"
	needsFile = "needs.yaml"
	// the answer so far; exhaustive choices have their own files
	AnswerFile = "answer.json"
	PageFile   = "answer.html"
	GridFile   = "exhaustive.json"
	GridPage   = "exhaustive.html"
)

// ErrFolder means that a folder does not hold a choice, or is in use.
var ErrFolder = errors.New("not a usable choice folder")

// Standing is the progress of a choice.
type Standing struct {
	Schema string `json:"schema"`
	// Needs is the path of the needs file; its relative paths start there.
	Needs    string    `json:"needs"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	SpentS   float64   `json:"spent_s"`
	BudgetS  float64   `json:"budget_s"`
	Trials   int       `json:"trials"`
	Sentence string    `json:"sentence,omitempty"` // the answer so far
	// Lines are the last progress lines.
	Lines []string `json:"said,omitempty"`

	// Running is true while a command is choosing in the folder.
	Running bool `json:"running"`
}

const maxSavedLines = 12

// Lock creates and locks the folder, and stores the needs there.
func (c *Contest) Lock() (release func() error, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create choice folder: %w", err)
	}
	f, err := os.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open choice folder: %w", err)
	}
	lock, err := flock.Acquire(f)
	if err != nil {
		return nil, errors.Join(advice.With(fmt.Errorf("%w: another command is choosing in %s", ErrFolder, c.Dir),
			"wait for it, or use another folder"), f.Close())
	}
	path, err := filepath.Abs(c.Needs.path)
	if err == nil {
		err = writeFile(filepath.Join(c.Dir, needsFile), c.Needs.text)
	}
	if err == nil {
		c.state = Standing{Schema: StateSchema, Needs: path, Started: time.Now(), BudgetS: c.Needs.Budget.Duration().Seconds()}
		if was, ok := ReadState(c.Dir); ok == nil {
			c.state.Started = was.Started
		}
		err = c.SaveState("", Answer{}, false)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock.Close, nil
}

// SaveState appends a progress line and saves the answer so far.
func (c *Contest) SaveState(line string, a Answer, done bool) error {
	if line != "" {
		c.state.Lines = append(c.state.Lines, line)
		c.state.Lines = c.state.Lines[max(0, len(c.state.Lines)-maxSavedLines):]
	}
	c.state.SpentS, c.state.Trials, c.state.Sentence = c.race.Spent(), len(c.race.Results()), a.Sentence
	if done {
		c.state.Finished = time.Now()
	}
	text, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return fmt.Errorf("save choice: %w", err)
	}
	return writeFile(filepath.Join(c.Dir, stateFile), append(text, '\n'))
}

func writeFile(path string, text []byte) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// ReadState reads the progress of a choice. The error wraps fs.ErrNotExist if there is none.
func ReadState(dir string) (s Standing, err error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Schema != StateSchema {
		err = fmt.Errorf("schema is %q, want %s: %w", s.Schema, StateSchema, fs.ErrNotExist)
	}
	if err != nil {
		return s, fmt.Errorf("read choice in %s: %w", dir, err)
	}
	if s.Running, err = flock.IsHeld(dir); err != nil {
		return s, fmt.Errorf("read choice in %s: %w", dir, err)
	}
	return s, nil
}

// ReadSavedNeeds reads the needs of a folder's last choice.
func ReadSavedNeeds(dir string) (Needs, error) {
	s, err := ReadState(dir)
	if err != nil {
		return Needs{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, needsFile))
	if err != nil {
		return Needs{}, fmt.Errorf("read needs of the choice: %w", err)
	}
	return Parse(s.Needs, text)
}
