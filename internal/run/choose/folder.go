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

// StateSchema versions choice.json.
const StateSchema = "skerry/choice/v1"

// Files of a choice's folder, beside experiments and runs.
const (
	stateFile = "choice.json"
	needsFile = "needs.yaml"
	// AnswerFile is the answer so far, PageFile the same as a page; those of an exhaustive choice stand beside.
	AnswerFile = "answer.json"
	PageFile   = "answer.html"
	GridFile   = "exhaustive.json"
	GridPage   = "exhaustive.html"
)

// ErrFolder says that a folder is not one of a choice, or is in use.
var ErrFolder = errors.New("no folder to choose in")

// Standing is how a choice stands, for who follows it.
type Standing struct {
	Schema string `json:"schema"`
	// Needs is where the needs file was: what it names is relative to that.
	Needs    string    `json:"needs"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`
	SpentS   float64   `json:"spent_s"`
	BudgetS  float64   `json:"budget_s"`
	Trials   int       `json:"trials"`
	Sentence string    `json:"sentence,omitempty"` // the answer so far
	// Said are the lines that were told last.
	Lines []string `json:"said,omitempty"`

	// Running says whether a command is choosing in the folder.
	Running bool `json:"running"`
}

// maxSavedLines is how many lines are kept.
const maxSavedLines = 12

// Lock takes the folder, making it where it is not there, so that no other command chooses in it, and
// keeps the needs there.
func (c *Contest) Lock() (release func() error, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the choice's folder: %w", err)
	}
	f, err := os.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the choice's folder: %w", err)
	}
	lock, err := flock.Take(f)
	if err != nil {
		return nil, errors.Join(
			advice.With(fmt.Errorf("%w: another command is choosing in %s", ErrFolder, c.Dir), "wait for it, or choose in another folder"),
			f.Close(),
		)
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

// SaveState keeps how the choice stands: the line that was told last, and the answer so far.
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
		return fmt.Errorf("keeping how the choice stands: %w", err)
	}
	return writeFile(filepath.Join(c.Dir, stateFile), append(text, '\n'))
}

func writeFile(path string, text []byte) error {
	return atomicfile.File(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// ReadState reads how the choice in a folder stands. The error wraps fs.ErrNotExist where it is none.
func ReadState(dir string) (s Standing, err error) {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Schema != StateSchema {
		err = fmt.Errorf("it is %q, not %s: %w", s.Schema, StateSchema, fs.ErrNotExist)
	}
	if err != nil {
		return s, fmt.Errorf("reading the choice in %s: %w", dir, err)
	}
	if s.Running, err = flock.Held(dir); err != nil {
		return s, fmt.Errorf("reading the choice in %s: %w", dir, err)
	}
	return s, nil
}

// ReadSavedNeeds reads the needs that a folder's choice was made with last.
func ReadSavedNeeds(dir string) (Needs, error) {
	s, err := ReadState(dir)
	if err != nil {
		return Needs{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, needsFile))
	if err != nil {
		return Needs{}, fmt.Errorf("reading the needs of the choice: %w", err)
	}
	return Parse(s.Needs, text)
}
