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
	quick, plan, now   bool
}

func newReproduce(a *app) *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce [PAGE|DOCUMENT|STEP|all]...",
		Short: "Run what the pages of results rest on, and make the pages of it",
		Long: "Run the experiments behind the pages of docs/results, one after another, and make the pages from what was\n" +
			"measured. A row for each trial is kept beside the pages. The command waits while others use the machine.\n\n" +
			"An experiment that was run before is not run again, and an interrupted one goes on. Ctrl-C ends the trial at\n" +
			"hand and keeps those before it: on the page too, unless an earlier run measured more. The name of a step\n" +
			"stands for that step alone. A step whose database is not installed is left out, and named.\n\n" +
			"--quick runs each experiment in its short form, to see that all of it works. Figures of short forms are no\n" +
			"results: they stand on copies of the pages below --out.",
		Example: `  skerry reproduce --plan
  skerry reproduce fhc
  skerry reproduce hydra-mixed-30 faults-redis
  skerry reproduce all --quick
  skerry reproduce faults --quick --now    # while others use the machine: does it work?`,
		RunE: func(cmd *cobra.Command, names []string) error {
			plan, err := results.LoadPlan(f.file)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			pages, err := plan.Select(names, f.quick)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if f.now && !f.quick {
				return fmt.Errorf("%w: --now goes with --quick alone: what is measured beside other work is no result", cli.ErrUsage)
			}
			if f.plan {
				return a.showPlan(f, pages)
			}
			return a.reproduce(cmd.Context(), f, pages)
		},
	}
	c.Flags().StringVar(&f.file, "file", "docs/results/plan.yaml", "take pages and their experiments from `FILE`, in the repository's root")
	c.Flags().StringVar(&f.out, "out", "runs/reproduce", "make run directories below `DIR`")
	c.Flags().StringVar(&f.results, "results", "docs/results", "the pages are in `DIR`, and what is kept of runs in its data")
	c.Flags().BoolVar(&f.quick, "quick", false, "run short forms, whose figures are no results")
	c.Flags().BoolVar(&f.now, "now", false, "with --quick, do not wait until nothing else uses the machine")
	c.Flags().BoolVar(&f.plan, "plan", false, "only say what would be run, and how long it takes")
	return c
}

// folder are the pages. Experiments are looked for where the command is called.
func (f reproduceFlags) folder() results.Folder { return results.Folder{Dir: f.results, Root: "."} }

func (a *app) showPlan(f reproduceFlags, pages []results.PlanPage) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAGE\tSTEP\tEXPERIMENT\tAT MOST ABOUT")
	var sum time.Duration
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
			sum += takes
			text := "not known"
			if known {
				text = takes.Round(exact).String()
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, s.Name, s.Run, text)
		}
	}
	fmt.Fprintf(t, "all\t\t\t%v\n", sum.Round(time.Minute))
	return t.Flush()
}

func (a *app) reproduce(ctx context.Context, f reproduceFlags, pages []results.PlanPage) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	begun := time.Now()
	if f.quick { // short forms prove that all of it works, and wait once
		if err := a.tryPages(ctx, &f); err != nil {
			return err
		}
	}
	var failed error
	for _, p := range pages {
		for _, s := range p.Steps {
			err := a.bring(ctx, f, s)
			if errors.Is(err, install.ErrNotInstalled) {
				fmt.Fprintf(a.Err, "%s: left out: %v\n", s.Name, err)
				continue
			}
			if err == nil {
				continue
			}
			err = fmt.Errorf("%s: %w", s.Name, err)
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(a.Err, "%v\n", err) // the steps after it have a night of their own
			failed = errors.Join(failed, err)
		}
	}
	if f.quick {
		failed = errors.Join(failed, f.folder().WritePages())
	}
	fmt.Fprintf(a.Err, "done in %v; the pages are in %s\n", time.Since(begun).Round(time.Second), f.results)
	return failed
}

// tryPages makes copies of the pages for the figures of short forms, and waits until nothing else uses the machine.
func (a *app) tryPages(ctx context.Context, f *reproduceFlags) error {
	tried := filepath.Join(f.out, "quick-pages")
	if err := f.folder().CopyTemplates(results.Folder{Dir: tried, Root: "."}); err != nil {
		return err
	}
	f.results = tried
	if f.now {
		return nil
	}
	return a.quiet(ctx)
}

// bring brings a step to its end, and keeps what it measured: of an interrupted one the trials that ended, where no
// earlier run measured more.
func (a *app) bring(ctx context.Context, f reproduceFlags, s results.Step) error {
	dir, err := a.step(ctx, f, s)
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
		wrong = f.fillAfterStep()
	}
	return errors.Join(err, wrong)
}

// fillAfterStep makes the pages after a step whose figures are kept: a night's work is shown before the next one ends. Those of
// short forms are made once, after the last: a short form takes seconds, as the making does.
func (f reproduceFlags) fillAfterStep() error {
	if f.quick {
		return nil
	}
	return f.folder().WritePages()
}

// step brings a step's run to its end, and returns its directory.
func (a *app) step(ctx context.Context, f reproduceFlags, s results.Step) (dir string, err error) {
	run := runFlags{out: filepath.Join(f.out, s.Name), sets: s.Settings(f.quick), fast: f.quick}
	if f.quick { // its figures are no results: what is suspect is not measured again
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
	case err == nil && (before.Run.File.Text != c.Source.Text || !slices.Equal(before.Run.File.Set, c.Source.Set)): // another experiment now
	case err == nil && before.Summary.Complete:
		return dir, nil
	case err == nil:
		if err := a.figures(ctx, f); err != nil {
			return "", err
		}
		return dir, runner.Resume(ctx, dir, c)
	}
	if err := a.figures(ctx, f); err != nil {
		return "", err
	}
	fmt.Fprintf(a.Err, "%s: %s\n", s.Name, s.Run)
	return runner.Run(ctx, c)
}

// latestName is the link to the newest run in a folder of runs.
const latestName = "latest"

// figures waits until nothing else uses the machine, where figures are to be kept.
func (a *app) figures(ctx context.Context, f reproduceFlags) error {
	if f.quick {
		return nil
	}
	return a.quiet(ctx)
}

func (a *app) quiet(ctx context.Context) error {
	last := time.Time{}
	return results.WaitIdle(ctx, files.Local{}, runtime.NumCPU(), func(busy float64) {
		if time.Since(last) > time.Minute {
			last = time.Now()
			fmt.Fprintf(a.Err, "waiting: others use %.0f %% of the machine's processors; figures need them idle\n", 100*busy)
		}
	})
}
