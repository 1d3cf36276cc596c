package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/load/ycsb"
	"skerry/internal/run/draft"
	"skerry/internal/topology"
)

// Form is the initial content of the pages that create experiments and needs files.
type Form struct {
	Draft      draft.Experiment `json:"draft"`
	Sketch     draft.Needs      `json:"sketch"`
	Databases  []string         `json:"databases"`
	Topologies []string         `json:"topologies"`
	Workloads  []string         `json:"workloads"`
	Offers     []event.Offer    `json:"offers"`
	BadDays    []draft.Day      `json:"bad_days"`
	// Starts reports whether this server starts jobs. Folder is where it saves files.
	Starts bool   `json:"starts"`
	Folder string `json:"folder"`
}

// Text is an experiment, or the needs of a choice, as edited in a page.
type Text struct {
	Text string `json:"text"`
	// Needs is the name of a needs file. It is empty for an experiment, which has its name in the
	// text.
	Needs string `json:"needs"`
}

// Checked is the validation result of an unsaved file.
type Checked struct {
	Text  string               `json:"text"`
	Name  string               `json:"name"` // if valid
	Valid bool                 `json:"valid"`
	Wrong []experiment.Mistake `json:"wrong"`
	Notes []string             `json:"notes"`
	// Trials is the number of planned trials, EstimateS their longest duration; 0 if unknown.
	Trials    int     `json:"trials"`
	EstimateS float64 `json:"estimate_s"`
	// Candidates are the candidates of a choice. Left are the excluded ones, with reasons.
	Candidates []string `json:"candidates,omitempty"`
	Left       []string `json:"left,omitempty"`
	// Places are the sites of a valid file's topology.
	Places *draft.Places `json:"places,omitempty"`

	command string // see experiment.Validation.FirstCommand
}

// Saved names a saved file.
type Saved struct {
	File string `json:"file"`
}

// errExists means that saving would replace a file that this server did not write.
var errExists = errors.New("the file exists already")

var errInvalid = errors.New("the file is not valid")

func (s *Server) form(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Form{
		Draft: draft.DefaultExperiment(), Sketch: draft.DefaultNeeds(), Databases: slices.Sorted(maps.Keys(s.Databases)),
		Topologies: topology.Presets(), Workloads: ycsb.BuiltinNames(),
		Offers: event.Offers(), BadDays: draft.Days(), Starts: s.Launch != nil, Folder: s.Experiments,
	})
}

const bodyLimit = 256 << 10

func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(into); err != nil {
		writeRefusal(w, http.StatusBadRequest, "cannot decode request: "+err.Error(), "")
		return false
	}
	return true
}

func draftFile[T draft.File](s *Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var file T
		if !readBody(w, r, &file) {
			return
		}
		text, err := file.YAML()
		if err != nil {
			writeJSON(w, http.StatusOK, Checked{Wrong: []experiment.Mistake{{Message: err.Error()}}, Notes: []string{}})
			return
		}
		writeJSON(w, http.StatusOK, s.validateText(Text{Text: text, Needs: file.NeedsName()}))
	}
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	var t Text
	if readBody(w, r, &t) {
		writeJSON(w, http.StatusOK, s.validateText(t))
	}
}

func (s *Server) validateText(t Text) Checked {
	if t.Needs != "" {
		return s.validateNeeds(t)
	}
	v := experiment.ValidateText(filepath.Join(s.Experiments, "experiment.yaml"), []byte(t.Text), s.Databases)
	if s.AllowCommands || v.FirstCommand() == "" { // a custom database is found by its commands
		v.NoteMissingDatabases(s.Databases)
	}
	c := Checked{Text: t.Text, Name: v.Name, Valid: v.Valid, Wrong: append([]experiment.Mistake{}, v.Problems...),
		Notes: append([]string{}, v.Notes...), Trials: v.Trials, EstimateS: v.EstimateS, command: v.FirstCommand()}
	if v.Valid {
		p := draft.NewPlaces(v.Cloud())
		c.Places = &p
	}
	return c
}

func (s *Server) save(w http.ResponseWriter, r *http.Request) error {
	var t Text
	if !readBody(w, r, &t) {
		return nil
	}
	file, err := s.saveFile(t)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, Saved{File: file})
	return nil
}

// saveFile writes a valid file to NAME.yaml. It replaces an existing file only if this server wrote
// it and it is unchanged since.
func (s *Server) saveFile(t Text) (file string, err error) {
	if s.Experiments == "" {
		return "", fmt.Errorf("%w: saving files is disabled", errExists)
	}
	c, text := s.validateText(t), t.Text
	if !c.Valid {
		return "", fmt.Errorf("%w: %s", errInvalid, c.Wrong[0].Message)
	}
	file = filepath.Join(s.Experiments, c.Name+".yaml") // names contain no separators
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	before, err := os.ReadFile(file)
	switch {
	case err == nil && string(before) == text:
		return file, nil
	case err == nil && s.jobs.wrote[file] != string(before):
		return "", fmt.Errorf("%w: %s", errExists, file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("save file: %w", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if err == nil {
		flags = os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o666)
	if err != nil {
		return "", fmt.Errorf("save file: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("save file: %w", err)
	}
	s.jobs.wrote[file] = text
	return file, nil
}
