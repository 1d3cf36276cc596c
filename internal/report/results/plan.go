// Package results makes the pages of docs/results. A plan lists the experiments behind each page.
// Each run's trials are stored as CSV rows next to the page, and the page is rendered from those
// rows and its template.
//
//	plan ──► runs ──► data/STEP.csv ──┬──► PAGE.md
//	                                  │    a test compares
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

// Plan is the content of plan.yaml.
type Plan struct {
	// Pages are listed in the order of execution.
	Pages []PlanPage `yaml:"pages" jsonschema:"required"`
}

// PlanPage is a page of results.
type PlanPage struct {
	// Name is the file name without .md.
	Name string `yaml:"page" jsonschema:"required"`
	// Document that the page reproduces: fhc, faults, clouds, services, hydra, mds; "" for none.
	Document string `yaml:"document"`
	Steps    []Step `yaml:"steps" jsonschema:"required"`
}

// Step is one run of an experiment.
type Step struct {
	// Name of the data file, without .csv.
	Name string `yaml:"name" jsonschema:"required"`
	// Run is an experiment file, relative to the repository. Set overrides values in it.
	Run string   `yaml:"run" jsonschema:"required"`
	Set []string `yaml:"set"`
	// TriedBy names a step whose short form also covers this one: --quick skips this step.
	TriedBy string `yaml:"tried_by"`
	// Keep lists the metrics to store for each trial, as in assertions. A trailing * matches any
	// suffix. Repeated events store their mean; .most is the maximum, .times the number of events,
	// .stalled the number followed by an unresponsive period, and .used, .used_stalled,
	// .used_unresponsive are for events on links in use. turn.NAME stores each occurrence
	// separately, as NAME.01.unresponsive. pair.* stores the bytes per operation between each pair
	// of data nodes. change.* stores each node's membership changes. probes.read.highest is the
	// highest 95th percentile of reads in any short job; .before and .during are the medians before
	// and during events, .growth is their ratio.
	Keep []string `yaml:"keep"`
	// Over lists the figures to store over time, of the first valid trial of each cell
	// (PointFigures).
	Over []string `yaml:"over"`
}

// LoadPlan reads and validates a plan.
func LoadPlan(path string) (Plan, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Plan{}, advice.With(fmt.Errorf("no evaluation plan at %s", path),
			"run the command in the root of the repository, or name the plan with --file")
	}
	if err != nil {
		return Plan{}, fmt.Errorf("read evaluation plan: %w", err)
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

func (p Plan) validate() error {
	pages, steps := map[string]bool{}, map[string]bool{}
	for _, page := range p.Pages {
		if pages[page.Name] {
			return fmt.Errorf("duplicate page %s in the plan", page.Name)
		}
		pages[page.Name] = true
		for _, s := range page.Steps {
			if steps[s.Name] {
				return fmt.Errorf("duplicate step %s in the plan", s.Name)
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
				return fmt.Errorf("page and step %s have the same name", s.Name)
			}
			if s.TriedBy != "" && (s.TriedBy == s.Name || !steps[s.TriedBy]) {
				return fmt.Errorf("step %s: tried_by: %q is not another step", s.Name, s.TriedBy)
			}
		}
	}
	return nil
}

func (s Step) validate() error {
	for _, name := range s.Over {
		if !slices.Contains(pointFigures, name) {
			return fmt.Errorf("over: %q is not one of %s", name, strings.Join(pointFigures, ", "))
		}
	}
	switch {
	case s.Run == "":
		return fmt.Errorf("run: no experiment")
	case len(s.Keep) == 0:
		return fmt.Errorf("keep: no metrics")
	}
	return nil
}

func (p Plan) hasStep(step string) bool {
	return slices.ContainsFunc(p.Pages, func(page PlanPage) bool {
		return slices.ContainsFunc(page.Steps, func(s Step) bool { return s.Name == step })
	})
}

// Select returns the pages and steps that names request, in the plan's order. A name is a page, a
// document, a step, or all; no names mean all. quick skips steps that another step covers, unless
// they are named.
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
	return "choose from " + strings.Join(known, ", ")
}

func unique(names []string) (out []string) {
	for _, n := range names {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

var sizeSettings = []string{"workload.records=", "stop=", "stop.", "repetitions="}

// Settings returns the overrides of the step. The quick form omits sizes, which the experiment
// defines under fast.
func (s Step) Settings(quick bool) []string {
	if !quick {
		return s.Set
	}
	return slices.DeleteFunc(slices.Clone(s.Set), func(set string) bool {
		return slices.ContainsFunc(sizeSettings, func(size string) bool { return strings.HasPrefix(set, size) })
	})
}

// EstimateTime returns the longest expected duration, and whether it is known. root is the
// repository.
func (s Step) EstimateTime(root string, quick bool) (time.Duration, bool, error) {
	e, err := experiment.Load(filepath.Join(root, s.Run), s.Settings(quick), quick)
	if err != nil {
		return 0, false, fmt.Errorf("step %s: %w", s.Name, err)
	}
	takes, known := e.Estimate()
	return takes, known, nil
}

// MeasuredTime returns how long the step took when its stored trials were measured, and false without data. It is
// computed from the times at which trials started. A pause of more than two trials between two starts is an
// interruption of the run and does not count.
func (f Folder) MeasuredTime(s Step) (time.Duration, bool, error) {
	rows, err := f.Rows(s.Name)
	if errors.As(err, new(notMeasuredError)) {
		return 0, false, nil
	}
	if err != nil || len(rows) < 2 {
		return 0, false, err
	}
	e, err := experiment.Load(filepath.Join(f.Root, s.Run), s.Settings(false), false)
	if err != nil {
		return 0, false, fmt.Errorf("step %s: %w", s.Name, err)
	}
	longest, known := e.TrialTime()
	if !known {
		return 0, false, nil
	}
	return sumGaps(rows, 2*(longest+e.FormationTime())), true, nil
}

// sumGaps adds the times between the starts of trials, without those above the limit, and a mean one for the last trial.
func sumGaps(rows []Row, limit time.Duration) time.Duration {
	var starts []time.Time
	for _, r := range rows {
		starts = append(starts, r.Started)
	}
	slices.SortFunc(starts, time.Time.Compare)
	var sum time.Duration
	counted := 0
	for i := 1; i < len(starts); i++ {
		if gap := starts[i].Sub(starts[i-1]); gap <= limit {
			sum += gap
			counted++
		}
	}
	if counted == 0 {
		return 0
	}
	return sum * time.Duration(len(rows)) / time.Duration(counted)
}

const (
	// maxForeignShare is the share of the CPU that other processes may use during idleSpan before a
	// run whose figures are published.
	maxForeignShare = 0.05
	idleSpan        = 5 * time.Second
)

// WaitIdle waits until the machine is idle. It calls report with the CPU share of other processes
// each time the share is too high.
func WaitIdle(ctx context.Context, on files.System, cores int, report func(busy float64)) error {
	for {
		before, err := sample.ReadMachineUsage(ctx, on)
		if err != nil {
			return fmt.Errorf("measure CPU usage: %w", err)
		}
		begin := time.Now()
		if err := linger.For(ctx, idleSpan); err != nil {
			return err
		}
		after, err := sample.ReadMachineUsage(ctx, on)
		if err != nil {
			return fmt.Errorf("measure CPU usage: %w", err)
		}
		used := after.Busy + after.Steal - before.Busy - before.Steal
		busy := used.Seconds() / time.Since(begin).Seconds() / float64(cores)
		if busy <= maxForeignShare {
			return nil
		}
		report(busy)
	}
}
