package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/install"
	"skerry/internal/machine/files"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/results"
	"skerry/internal/run/runner"
)

type reproduceFlags struct {
	file, out, results string
	quick, plan        bool
}

func newReproduce(a *app) *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce [PAGE|DOCUMENT|STEP|all]...",
		Short: "Run the experiments behind the results pages, and write the pages",
		Long: "Run the experiments behind the pages of docs/results one after another, and write the pages from the measurements.\n" +
			"A row for each trial is stored next to the pages. The command waits while other programs use the machine.\n" +
			"\n" +
			"A completed experiment is not repeated, and an interrupted one is resumed. Ctrl-C ends the current trial and keeps\n" +
			"the completed ones, also on the page, unless an earlier run measured more. The name of a step runs that step only.\n" +
			"A step whose database is not installed is skipped with a message.\n" +
			"\n" +
			"--quick runs the short form of each experiment as a test. Its figures are not results: they are written to copies\n" +
			"of the pages below --out.",
		Example: `  skerry reproduce --plan
  skerry reproduce fhc
  skerry reproduce hydra-mixed-30 faults-redis
  skerry reproduce all --quick`,
		RunE: func(cmd *cobra.Command, names []string) error {
			plan, err := results.LoadPlan(f.file)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			pages, err := plan.Select(names, f.quick)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if f.plan {
				return a.showPlan(f, pages)
			}
			return a.reproduce(cmd.Context(), f, pages)
		},
	}
	c.Flags().StringVar(&f.file, "file", "docs/results/plan.yaml",
		"read pages and their experiments from `FILE`, in the root of the repository")
	c.Flags().StringVar(&f.out, "out", "runs/reproduce", "create run directories below `DIR`")
	c.Flags().StringVar(&f.results, "results", "docs/results", "`DIR` of the pages; the rows of trials are in its folder data")
	c.Flags().BoolVar(&f.quick, "quick", false, "run short forms, whose figures are not results, also on a busy machine")
	c.Flags().BoolVar(&f.plan, "plan", false, "print the experiments and their durations without running them")
	return c
}

// folder returns the folder of pages. Paths of experiments are relative to the working directory.
func (f reproduceFlags) folder() results.Folder { return results.Folder{Dir: f.results, Root: "."} }

func (a *app) showPlan(f reproduceFlags, pages []results.PlanPage) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAGE\tSTEP\tEXPERIMENT\tAT MOST ABOUT\tMEASURED IN")
	var sum, total time.Duration
	exact := time.Minute / 2
	if f.quick {
		exact = time.Second
	}
	for _, p := range pages {
		for _, s := range p.Steps {
			takes, known, err := s.EstimateTime(".", f.quick)
			if err != nil {
				return err
			}
			took, measured, err := f.folder().MeasuredTime(s)
			if err != nil {
				return err
			}
			sum += takes
			text, last := "unknown", "-"
			if known {
				text = takes.Round(exact).String()
			}
			if measured {
				last = took.Round(exact).String()
				total += took
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Name, s.Name, s.Run, text, last)
		}
	}
	fmt.Fprintf(t, "all\t\t\t%v\t%v\n", sum.Round(time.Minute), total.Round(time.Minute))
	return t.Flush()
}

func (a *app) reproduce(ctx context.Context, f reproduceFlags, pages []results.PlanPage) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	begun := time.Now()
	if f.quick { // the figures of short forms are in copies of the pages
		tried := filepath.Join(f.out, "quick-pages")
		if err := f.folder().CopyTemplates(results.Folder{Dir: tried, Root: "."}); err != nil {
			return err
		}
		f.results = tried
	}
	var failed error
	for _, p := range pages {
		for _, s := range p.Steps {
			err := a.runStep(ctx, f, s)
			if errors.Is(err, install.ErrNotInstalled) {
				fmt.Fprintf(a.Err, "%s: skipped: %v\n", s.Name, err)
				continue
			}
			if err == nil {
				continue
			}
			err = fmt.Errorf("%s: %w", s.Name, err)
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(a.Err, "%v\n", err) // later steps still run
			failed = errors.Join(failed, err)
		}
	}
	if f.quick {
		failed = errors.Join(failed, f.folder().WritePages())
	}
	fmt.Fprintf(a.Err, "done in %v; the pages are in %s\n", time.Since(begun).Round(time.Second), f.results)
	return failed
}

// runStep runs a step and stores its measurements. Of an interrupted step the completed trials are stored, unless an
// earlier run measured more.
func (a *app) runStep(ctx context.Context, f reproduceFlags, s results.Step) error {
	dir, err := a.completeRun(ctx, f, s)
	if dir == "" {
		return err
	}
	d, wrong := record.Open(dir)
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	if f.quick {
		fmt.Fprintf(a.Out, "\n%s: %s\n", s.Name, dir)
		err = errors.Join(err, report.Text(a.Out, d, report.TextOptions{Width: a.Width()}))
	}
	rows, wrong := results.TrialRows(d, s.Keep)
	over, missing := results.TrialPoints(d, s.Over)
	if wrong = errors.Join(wrong, missing); wrong == nil {
		wrong = f.folder().SaveTrials(s.Name, rows, over, d.Summary.Complete)
	}
	if wrong == nil {
		wrong = f.writePagesAfterStep()
	}
	return errors.Join(err, wrong)
}

// writePagesAfterStep writes the pages after each step, so that results appear before the last step ends. Pages of short
// forms are written once after the last step, because a short form takes only seconds.
func (f reproduceFlags) writePagesAfterStep() error {
	if f.quick {
		return nil
	}
	return f.folder().WritePages()
}

// completeRun starts or resumes the run of a step, and returns its directory.
func (a *app) completeRun(ctx context.Context, f reproduceFlags, s results.Step) (dir string, err error) {
	run := runFlags{out: filepath.Join(f.out, s.Name), sets: s.Settings(f.quick), fast: f.quick}
	if f.quick { // suspect trials are not repeated, because the figures are not results
		run.sets = append(slices.Clone(run.sets), "retries=0")
		run.out += "-quick"
	}
	c, err := a.runConfig(run, s.Run)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(run.out, latestName)
	before, err := record.Open(dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", err
	case err == nil && (before.Run.File.Text != c.Source.Text || !slices.Equal(before.Run.File.Set, c.Source.Set)):
		// The experiment has changed.
	case err == nil && before.Summary.Complete:
		return dir, nil
	case err == nil:
		if err := a.waitForResults(ctx, f); err != nil {
			return "", err
		}
		return dir, runner.Resume(ctx, dir, c)
	}
	if err := a.waitForResults(ctx, f); err != nil {
		return "", err
	}
	fmt.Fprintf(a.Err, "%s: %s\n", s.Name, s.Run)
	return runner.Run(ctx, c)
}

// latestName is the name of the link to the newest run in a folder of runs.
const latestName = "latest"

// waitForResults waits until the machine is idle, unless the figures are not results.
func (a *app) waitForResults(ctx context.Context, f reproduceFlags) error {
	if f.quick {
		return nil
	}
	last := time.Time{}
	return results.WaitIdle(ctx, files.Local{}, runtime.NumCPU(), func(busy float64) {
		if time.Since(last) > time.Minute {
			last = time.Now()
			fmt.Fprintf(a.Err, "waiting for an idle machine: other programs use %.0f %% of its processors\n", 100*busy)
		}
	})
}
