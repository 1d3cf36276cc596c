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

// Form is what the pages that make experiments and needs begin with.
type Form struct {
	Draft      draft.Experiment `json:"draft"`
	Sketch     draft.Needs      `json:"sketch"`
	Databases  []string         `json:"databases"`
	Topologies []string         `json:"topologies"`
	Workloads  []string         `json:"workloads"`
	Offers     []event.Offer    `json:"offers"`
	BadDays    []draft.Day      `json:"bad_days"`
	// Starts says whether this server starts runs; Folder is where it saves their files.
	Starts bool   `json:"starts"`
	Folder string `json:"folder"`
}

// Text is a file as a page has it: an experiment, or the needs of a choice.
type Text struct {
	Text string `json:"text"`
	// Needs is the name of a needs file; "" is an experiment, which has its name in the text.
	Needs string `json:"needs"`
}

// Checked is what there is to say of a file that nobody has saved yet.
type Checked struct {
	Text  string               `json:"text"`
	Name  string               `json:"name"` // of a valid one
	Valid bool                 `json:"valid"`
	Wrong []experiment.Mistake `json:"wrong"`
	Notes []string             `json:"notes"`
	// Trials are as many as would be run, in at most about EstimateS seconds; 0 if that is not known.
	Trials    int     `json:"trials"`
	EstimateS float64 `json:"estimate_s"`
	// Candidates are those that a choice would be between, Left those that it leaves out, with the reason.
	Candidates []string `json:"candidates,omitempty"`
	Left       []string `json:"left,omitempty"`
	// Places are those of its topology, where it is valid.
	Places *draft.Places `json:"places,omitempty"`
}

// Saved says where an experiment lies.
type Saved struct {
	File string `json:"file"`
}

// errExists says that a file of a name is there that this server did not write.
var errExists = errors.New("a file of that name is there already")

// errInvalid says that an experiment, or needs, are not valid.
var errInvalid = errors.New("the file is not valid")

func (s *Server) form(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Form{
		Draft: draft.DefaultExperiment(), Sketch: draft.DefaultNeeds(), Databases: slices.Sorted(maps.Keys(s.Databases)), Topologies: topology.Presets(), Workloads: ycsb.BuiltinNames(),
		Offers: event.Offers(), BadDays: draft.Days(), Starts: s.Launch != nil, Folder: s.Experiments,
	})
}

// draftLimit bounds answers and texts of experiments.
const draftLimit = 256 << 10

// readBody reads what a page sends.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, draftLimit)).Decode(into); err != nil {
		writeRefusal(w, http.StatusBadRequest, "the request cannot be read: "+err.Error(), "")
		return false
	}
	return true
}

// draftFile makes the text of a form's answers. Answers that make none are mistakes of the text.
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

// validateText checks a text as if it lay where it would be saved.
func (s *Server) validateText(t Text) Checked {
	if t.Needs != "" {
		return s.validateNeeds(t)
	}
	v := experiment.ValidateText(filepath.Join(s.Experiments, "experiment.yaml"), []byte(t.Text), s.Databases)
	v.NoteMissingDatabases(s.Databases)
	c := Checked{Text: t.Text, Name: v.Name, Valid: v.Valid, Wrong: append([]experiment.Mistake{}, v.Problems...), Notes: append([]string{}, v.Notes...), Trials: v.Trials, EstimateS: v.EstimateS}
	if v.Valid {
		p := draft.NewPlaces(v.Cloud())
		c.Places = &p
	}
	return c
}

func (s *Server) save(w http.ResponseWriter, r *http.Request) {
	var t Text
	if !readBody(w, r, &t) {
		return
	}
	file, err := s.saveFile(t)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, Saved{File: file})
}

// saveFile writes a valid file to NAME.yaml. A file that is there is replaced only where this
// server wrote it and nobody changed it since.
func (s *Server) saveFile(t Text) (file string, err error) {
	if s.Experiments == "" {
		return "", fmt.Errorf("%w: this server saves no files", errExists)
	}
	c, text := s.validateText(t), t.Text
	if !c.Valid {
		return "", fmt.Errorf("%w: %s", errInvalid, c.Wrong[0].Message)
	}
	file = filepath.Join(s.Experiments, c.Name+".yaml") // a name has no separators
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	before, err := os.ReadFile(file)
	switch {
	case err == nil && string(before) == text:
		return file, nil
	case err == nil && s.jobs.wrote[file] != string(before):
		return "", fmt.Errorf("%w: %s", errExists, file)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("saving the file: %w", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if err == nil {
		flags = os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o666)
	if err != nil {
		return "", fmt.Errorf("saving the file: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("saving the file: %w", err)
	}
	s.jobs.wrote[file] = text
	return file, nil
}
