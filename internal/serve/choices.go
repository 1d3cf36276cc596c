package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/internal/run/choose"
	"skerry/internal/run/draft"
)

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

// choicePolicy isolates an answer in an origin of its own, like reportPolicy. The page's refresh
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
	writeJSON(w, http.StatusOK, list)
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
	c.Valid, c.EstimateS = true, contest.Needs.Budget.Duration().Seconds()
	for _, x := range contest.Candidates {
		c.Candidates = append(c.Candidates, x.Label())
	}
	c.Notes = append(c.Notes, contest.Notes...)
	for _, l := range contest.Excluded {
		c.Left = append(c.Left, l.Who+": "+l.Why)
	}
	p := draft.NewPlaces(contest.Cloud())
	c.Places = &p
	return c
}
