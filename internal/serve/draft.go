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
	"skerry/internal/experiment/draft"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// Form is what the page that makes experiments begins with.
type Form struct {
	Draft      draft.Draft   `json:"draft"`
	Databases  []string      `json:"databases"`
	Topologies []string      `json:"topologies"`
	Workloads  []string      `json:"workloads"`
	Offers     []event.Offer `json:"offers"`
	// Starts says whether this server starts runs; Folder is where it saves their files.
	Starts bool   `json:"starts"`
	Folder string `json:"folder"`
}

// Text is an experiment file as a page has it.
type Text struct {
	Text string `json:"text"`
}

// Checked is what there is to say of an experiment that nobody has saved yet.
type Checked struct {
	Text  string               `json:"text"`
	Name  string               `json:"name"` // of a valid one
	Valid bool                 `json:"valid"`
	Wrong []experiment.Mistake `json:"wrong"`
	Notes []string             `json:"notes"`
	// Trials are as many as would be run, in at most about EstimateS seconds; 0 if that is not known.
	Trials    int     `json:"trials"`
	EstimateS float64 `json:"estimate_s"`
	// Places are those of its topology, where it is valid.
	Places *draft.Places `json:"places,omitempty"`
}

// Saved says where an experiment lies.
type Saved struct {
	File string `json:"file"`
}

// errExists says that a file of a name is there that this server did not write.
var errExists = errors.New("a file of that name is there already")

// errExperiment says that an experiment is not valid.
var errExperiment = errors.New("the experiment is not valid")

func (s *Server) form(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Form{
		Draft: draft.Default(), Databases: slices.Sorted(maps.Keys(s.Databases)), Topologies: topology.Presets(), Workloads: ycsb.Names(),
		Offers: event.Offers(), Starts: s.Launch != nil, Folder: s.Experiments,
	})
}

// draftLimit bounds answers and texts of experiments.
const draftLimit = 256 << 10

// receive reads what a page sends.
func receive(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, draftLimit)).Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "the request cannot be read: "+err.Error(), "")
		return false
	}
	return true
}

// draft makes the text of answers. Answers that make none are told like mistakes of a text.
func (s *Server) draft(w http.ResponseWriter, r *http.Request) {
	var d draft.Draft
	if !receive(w, r, &d) {
		return
	}
	text, err := d.YAML()
	if err != nil {
		writeJSON(w, http.StatusOK, Checked{Wrong: []experiment.Mistake{{Message: err.Error()}}, Notes: []string{}})
		return
	}
	writeJSON(w, http.StatusOK, s.examine(text))
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	var t Text
	if receive(w, r, &t) {
		writeJSON(w, http.StatusOK, s.examine(t.Text))
	}
}

// examine checks a text as if it lay where it would be saved.
func (s *Server) examine(text string) Checked {
	v := experiment.ValidateText(filepath.Join(s.Experiments, "experiment.yaml"), []byte(text), s.Databases)
	v.Locate(s.Databases)
	c := Checked{Text: text, Name: v.Name, Valid: v.Valid, Wrong: append([]experiment.Mistake{}, v.Problems...), Notes: append([]string{}, v.Notes...), Trials: v.Trials, EstimateS: v.EstimateS}
	if v.Valid {
		p := draft.PlacesOf(v.Cloud())
		c.Places = &p
	}
	return c
}

func (s *Server) save(w http.ResponseWriter, r *http.Request) {
	var t Text
	if !receive(w, r, &t) {
		return
	}
	file, err := s.keep(t.Text)
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, Saved{File: file})
}

// keep writes a valid experiment to NAME.yaml. A file that is there is replaced only where this
// server wrote it and nobody changed it since.
func (s *Server) keep(text string) (file string, err error) {
	if s.Experiments == "" {
		return "", fmt.Errorf("%w: this server saves no files", errExists)
	}
	c := s.examine(text)
	if !c.Valid {
		return "", fmt.Errorf("%w: %s", errExperiment, c.Wrong[0].Message)
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
		return "", fmt.Errorf("saving the experiment: %w", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if err == nil {
		flags = os.O_WRONLY | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o666)
	if err != nil {
		return "", fmt.Errorf("saving the experiment: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("saving the experiment: %w", err)
	}
	s.jobs.wrote[file] = text
	return file, nil
}
