// Package results is how the pages of docs/results are made. A plan names the experiments
// that each page rests on; what their runs measured is kept beside the page, a row a trial; the
// page follows from those rows and from its template.
//
//	plan ──► runs ──► data/STEP.csv ──┬──► PAGE.md (package page)
//	         a machine left alone     │    a test compares
//	                  PAGE.md.tmpl ───┘
package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/evidence/sample"
	"skerry/internal/experiment"
	"skerry/internal/machine/files"
)

// Plan is what stands in an evaluation file.
type Plan struct {
	// Pages in the order in which they are made.
	Pages []PlanPage `yaml:"pages" jsonschema:"required"`
}

// PlanPage is a page of results.
type PlanPage struct {
	// Name of its file, without .md.
	Name string `yaml:"page" jsonschema:"required"`
	// Document that it repeats: fhc, faults, clouds, services, hydra, mds; "" for none.
	Document string `yaml:"document"`
	Steps    []Step `yaml:"steps" jsonschema:"required"`
}

// Step is one run of an experiment.
type Step struct {
	// Name of its data file, without .csv.
	Name string `yaml:"name" jsonschema:"required"`
	// Run is an experiment file, relative to the repository, and Set what is set in it.
	Run string   `yaml:"run" jsonschema:"required"`
	Set []string `yaml:"set"`
	// TriedBy is another step, whose short form shows that this one works too: --quick leaves this one out.
	TriedBy string `yaml:"tried_by"`
	// Keep are the figures that are kept of each trial, as assertions call them; a last * stands for any rest.
	// Of events that happened several times they are means, with .most the most of any, with .times how often that was,
	// with .stalled after how many nothing answered for a while, with .used how many hit links in use (of these .used_stalled and
	// .used_unresponsive). With turn.NAME each time of an event is kept by itself, as NAME.01.unresponsive. With pair.* the bytes that each two data nodes exchanged
	// for an operation are kept as well, with change.* each node's changes of membership, with
	// probes.read.highest the highest 95th percentile of reads of any short job, with .before and .during the medians before and
	// while events were in force, with .growth the latter divided by the former.
	Keep []string `yaml:"keep"`
	// Over are the figures that are kept over time, of the first valid trial of each cell (OverTime).
	Over []string `yaml:"over"`
}

// LoadPlan reads a plan.
func LoadPlan(path string) (Plan, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Plan{}, advice.With(fmt.Errorf("there is no plan of the evaluation at %s", path), "call it in the root of a clone of the repository, or give the plan with --file")
	}
	if err != nil {
		return Plan{}, fmt.Errorf("reading the evaluation's plan: %w", err)
	}
	root, err := strict.Parse(path, text)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	if err := strict.Decode(root, &p, "").AsError(); err != nil {
		return Plan{}, err
	}
	return p, p.validate()
}

// validate finds names that mean two things.
func (p Plan) validate() error {
	pages, steps := map[string]bool{}, map[string]bool{}
	for _, page := range p.Pages {
		if pages[page.Name] {
			return fmt.Errorf("the plan has two pages %s", page.Name)
		}
		pages[page.Name] = true
		for _, s := range page.Steps {
			if steps[s.Name] {
				return fmt.Errorf("the plan has two steps %s: their data would be one file", s.Name)
			}
			steps[s.Name] = true
			if err := s.validate(); err != nil {
				return fmt.Errorf("step %s: %w", s.Name, err)
			}
		}
	}
	for _, page := range p.Pages {
		for _, s := range page.Steps {
			if pages[s.Name] {
				return fmt.Errorf("the plan has a page and a step %s: the step could not be asked for alone", s.Name)
			}
			if s.TriedBy != "" && (s.TriedBy == s.Name || !steps[s.TriedBy]) {
				return fmt.Errorf("step %s is tried by %q, which is no other step", s.Name, s.TriedBy)
			}
		}
	}
	return nil
}

func (s Step) validate() error {
	for _, name := range s.Over {
		if !slices.Contains(PointFigures, name) {
			return fmt.Errorf("over time there are %s, and no %q", strings.Join(PointFigures, ", "), name)
		}
	}
	switch {
	case s.Run == "":
		return fmt.Errorf("it runs no experiment")
	case len(s.Keep) == 0:
		return fmt.Errorf("it keeps nothing")
	}
	return nil
}

// hasStep tells whether the plan has a step.
func (p Plan) hasStep(step string) bool {
	return slices.ContainsFunc(p.Pages, func(page PlanPage) bool {
		return slices.ContainsFunc(page.Steps, func(s Step) bool { return s.Name == step })
	})
}

// Select returns the pages that names ask for, in the plan's order: a page's, a document's, a step's
// for that step alone, or all for every one, as no name does. Of quick forms those are left out that
// another step tries, unless they are named themselves.
func (p Plan) Select(names []string, quick bool) (out []PlanPage, err error) {
	known := []string{"all"}
	for _, page := range p.Pages {
		known = append(known, page.Name, page.Document)
		for _, s := range page.Steps {
			known = append(known, s.Name)
		}
	}
	for _, n := range names {
		if n == "" || !slices.Contains(known, n) {
			return nil, advice.With(fmt.Errorf("no page, document or step %q", n), "%s", selectionHint(n, unique(known)))
		}
	}
	all := len(names) == 0 || slices.Contains(names, "all")
	for _, page := range p.Pages {
		whole := all || slices.Contains(names, page.Name) || slices.Contains(names, page.Document)
		page.Steps = slices.DeleteFunc(slices.Clone(page.Steps), func(s Step) bool {
			named := slices.Contains(names, s.Name)
			return !named && (!whole || quick && s.TriedBy != "")
		})
		if len(page.Steps) > 0 {
			out = append(out, page)
		}
	}
	return out, err
}

func selectionHint(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + strings.Join(known, ", ")
}

func unique(names []string) (out []string) {
	for _, n := range names {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// sizeSettings begin what a step sets of how much a trial does.
var sizeSettings = []string{"workload.records=", "stop=", "stop.", "repetitions="}

// Settings are what the step sets of its experiment. The short form, whose sizes the experiment says itself under
// fast, has all others.
func (s Step) Settings(quick bool) []string {
	if !quick {
		return s.Set
	}
	return slices.DeleteFunc(slices.Clone(s.Set), func(set string) bool {
		return slices.ContainsFunc(sizeSettings, func(size string) bool { return strings.HasPrefix(set, size) })
	})
}

// EstimateTime is the longest that a step is likely to take, and whether that is known; root is the
// repository. quick asks for the short form.
func (s Step) EstimateTime(root string, quick bool) (time.Duration, bool, error) {
	e, err := experiment.Load(filepath.Join(root, s.Run), s.Settings(quick), quick)
	if err != nil {
		return 0, false, fmt.Errorf("step %s: %w", s.Name, err)
	}
	takes, known := e.Estimate()
	return takes, known, nil
}

const (
	// quietShare is how much of a machine's processors others may use where figures are to be
	// published, over quietSpan.
	maxForeignShare = 0.05
	idleSpan        = 5 * time.Second
)

// WaitIdle waits until the machine does nothing else. told is called with the share of its
// processors that others use, each time that this is too much.
func WaitIdle(ctx context.Context, on files.System, cores int, told func(busy float64)) error {
	for {
		before, err := sample.ReadMachineUsage(ctx, on)
		if err != nil {
			return fmt.Errorf("looking whether the machine is busy: %w", err)
		}
		begin := time.Now()
		if err := linger.For(ctx, idleSpan); err != nil {
			return err
		}
		after, err := sample.ReadMachineUsage(ctx, on)
		if err != nil {
			return fmt.Errorf("looking whether the machine is busy: %w", err)
		}
		used := after.Busy + after.Steal - before.Busy - before.Steal
		busy := used.Seconds() / time.Since(begin).Seconds() / float64(cores)
		if busy <= maxForeignShare {
			return nil
		}
		told(busy)
	}
}
