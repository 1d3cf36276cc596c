package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
	"skerry/internal/run/choose"
	"skerry/internal/run/draft"
	"skerry/internal/run/live"
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
	// Starts reports whether this server starts jobs. Folder is the folder of saved files.
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
	live.WriteJSON(w, http.StatusOK, Form{
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
			live.WriteJSON(w, http.StatusOK, Checked{Wrong: []experiment.Mistake{{Message: err.Error()}}, Notes: []string{}})
			return
		}
		live.WriteJSON(w, http.StatusOK, s.validateText(Text{Text: text, Needs: file.NeedsName()}))
	}
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) {
	var t Text
	if readBody(w, r, &t) {
		live.WriteJSON(w, http.StatusOK, s.validateText(t))
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
	live.WriteJSON(w, http.StatusOK, Saved{File: file})
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

// Choice is an entry of the list of choices.
type Choice struct {
	Name string `json:"name"` // folder name
	choose.Standing
	// Page is the file of the current answer, Grid that of an exhaustive choice; "" if missing.
	Page string `json:"page,omitempty"`
	Grid string `json:"grid,omitempty"`
	// Problem explains why the choice cannot be read.
	Problem string `json:"problem,omitempty"`
}

// choicePolicy isolates an answer in a separate origin, like reportPolicy. The page's refresh
// needs allow-scripts, but no script is allowed to load.
const choicePolicy = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action " +
	"'none'; frame-ancestors 'none'"

func (s *Server) listChoices() ([]Choice, error) {
	out := []Choice{}
	if s.Choices == "" {
		return out, nil
	}
	found, err := os.ReadDir(s.Choices)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list choices: %w", err)
	}
	for _, f := range found {
		dir := filepath.Join(s.Choices, f.Name())
		state, err := choose.ReadState(dir)
		if !f.IsDir() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		c := Choice{Name: f.Name(), Standing: state}
		if err != nil {
			c.Problem = err.Error()
		}
		for file, page := range map[string]*string{choose.PageFile: &c.Page, choose.GridPage: &c.Grid} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				*page = file
			}
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Choice) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Name, a.Name)) })
	return out, nil
}

func (s *Server) choices(w http.ResponseWriter, _ *http.Request) error {
	list, err := s.listChoices()
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) choice(w http.ResponseWriter, r *http.Request) error {
	list, err := s.listChoices()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(c Choice) bool { return c.Name == r.PathValue("choice") })
	page := r.PathValue("page")
	if at < 0 || page == "" || page != list[at].Page && page != list[at].Grid {
		return errUnknownRun
	}
	text, err := os.ReadFile(filepath.Join(s.Choices, list[at].Name, page))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", choicePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text) // the peer went
	return nil
}

func (s *Server) validateNeeds(t Text) Checked {
	c := Checked{Text: t.Text, Name: t.Needs, Wrong: []experiment.Mistake{}, Notes: []string{}}
	wrong := func(err error) Checked {
		c.Wrong = experiment.ListMistakes(err, t.Needs+".yaml")
		return c
	}
	if choose.Slug(t.Needs) != strings.ToLower(t.Needs) {
		return wrong(errors.New("the name of a needs file must consist of letters, digits and single hyphens"))
	}
	machine, err := record.DescribeMachine()
	if err != nil {
		return wrong(err)
	}
	contest, err := draft.Plan(filepath.Join(s.Experiments, t.Needs+".yaml"), t.Text, s.Registry, machine.MemoryBytes)
	if err != nil {
		return wrong(err)
	}
	c.command = contest.FirstCommand()
	c.Valid, c.EstimateS = true, contest.Needs.Budget.Duration().Seconds()
	for _, x := range contest.Candidates {
		c.Candidates = append(c.Candidates, x.Label())
	}
	c.Notes = append(c.Notes, contest.Notes...)
	for i, line := range contest.Needs.Commands() {
		c.Notes = append(c.Notes, "runs on this machine: "+line)
		if i == 0 {
			c.command = line
		}
	}
	for _, l := range contest.Excluded {
		c.Left = append(c.Left, l.Who+": "+l.Why)
	}
	p := draft.NewPlaces(contest.Cloud())
	c.Places = &p
	return c
}
