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

	"skerry/internal/machine/files"
	"skerry/internal/record"
	"skerry/internal/report/results"
	"skerry/internal/report/results/data"
	"skerry/internal/run/runner"
)

type reproduceFlags struct {
	file, out, results string
	quick, plan        bool
}

func newReproduce(a *app) *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce [PAGE|DOCUMENT|all]...",
		Short: "Run what the pages of results rest on, and make the pages of it",
		Long: "Run the experiments behind the pages of docs/results, one after another on a machine that does nothing\n" +
			"else, keep a row for each trial beside the pages, and fill in the pages' tables, pictures and figures. It\n" +
			"waits while others use the machine. What was run before is not run again: an interrupted run goes on, and\n" +
			"Ctrl-C ends the trial at hand. --quick runs each experiment in its short form, to see that all of it works:\n" +
			"its figures are shown and kept nowhere.",
		Example: `  skerry reproduce --plan
  skerry reproduce fhc
  skerry reproduce all --quick`,
		RunE: func(cmd *cobra.Command, names []string) error {
			plan, err := results.Load(f.file)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			pages, err := plan.Select(names)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
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
	c.Flags().BoolVar(&f.quick, "quick", false, "run short forms, whose figures are not kept")
	c.Flags().BoolVar(&f.plan, "plan", false, "only say what would be run, and how long it takes")
	return c
}

func (a *app) showPlan(f reproduceFlags, pages []results.Page) error {
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAGE\tSTEP\tEXPERIMENT\tAT MOST ABOUT")
	var sum time.Duration
	for _, p := range pages {
		for _, s := range p.Steps {
			if f.quick && s.TriedBy != "" {
				continue
			}
			takes, known, err := s.Time(".", f.quick)
			if err != nil {
				return err
			}
			sum += takes
			text := "not known"
			if known {
				text = takes.Round(time.Minute / 2).String()
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.Name, s.Name, s.Run, text)
		}
	}
	fmt.Fprintf(t, "all\t\t\t%v\n", sum.Round(time.Minute))
	return t.Flush()
}

func (a *app) reproduce(ctx context.Context, f reproduceFlags, pages []results.Page) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	folder := results.Folder(f.results)
	var failed error
	for _, p := range pages {
		for _, s := range p.Steps {
			if f.quick && s.TriedBy != "" {
				continue
			}
			dir, err := a.step(ctx, f, s)
			if ctx.Err() != nil || dir == "" {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			failed = errors.Join(failed, err) // trials that failed are rows, too
			d, err := record.Open(dir)
			if err != nil {
				return err
			}
			if f.quick {
				fmt.Fprintf(a.out, "%s: %d trials in %s\n", s.Name, len(d.Summary.Trials), dir)
				continue
			}
			if err := folder.Keep(s.Name, data.Of(d, s.Keep)); err != nil {
				return err
			}
			if err := folder.Fill(); err != nil {
				return err
			}
		}
	}
	return failed
}

// step brings a step's run to its end, and returns its directory.
func (a *app) step(ctx context.Context, f reproduceFlags, s results.Step) (dir string, err error) {
	run := runFlags{out: filepath.Join(f.out, s.Name), sets: s.Set, fast: f.quick, retries: 1}
	if f.quick {
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
	case err == nil && before.Run.File.Text != c.Source.Text, !slices.Equal(before.Run.File.Set, c.Source.Set): // another experiment now
	case err == nil && before.Summary.Complete:
		return dir, nil
	case err == nil:
		if err := a.quiet(ctx); err != nil {
			return "", err
		}
		return dir, runner.Resume(ctx, dir, c)
	}
	if err := a.quiet(ctx); err != nil {
		return "", err
	}
	fmt.Fprintf(a.err, "%s: %s\n", s.Name, s.Run)
	return runner.Run(ctx, c)
}

// latestName is the link to the newest run in a folder of runs.
const latestName = "latest"

func (a *app) quiet(ctx context.Context) error {
	last := time.Time{}
	return results.Quiet(ctx, files.Local{}, runtime.NumCPU(), func(busy float64) {
		if time.Since(last) > time.Minute {
			last = time.Now()
			fmt.Fprintf(a.err, "waiting: others use %.0f %% of the machine's processors; figures need them idle\n", 100*busy)
		}
	})
}
