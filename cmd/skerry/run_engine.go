package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"skerry/cmd/internal/cli"
	"skerry/internal/run/dispatch"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// engineFlags are the flags of runs on an engine.
type engineFlags struct {
	on      string
	dryRun  bool
	options dispatch.Options
}

// addEngine adds the flags that select an engine.
func (e *engineFlags) addEngine(c *cobra.Command) {
	c.Flags().StringVar(&e.on, "on", "", "run the trials on `ENGINE`: "+strings.Join(dispatch.Names(), ", "))
	c.Flags().StringArrayVar(&e.options.Sbatch, "sbatch", nil,
		"with --on slurm, pass `OPTION` to sbatch, such as --sbatch=--account=lab (repeatable)")
	c.Flags().StringVar(&e.options.Image, "image", "", "with --on kubernetes, `IMAGE` of the pods, with skerry and the databases")
}

func (e *engineFlags) flags(c *cobra.Command, follow *string) {
	e.addEngine(c)
	c.Flags().StringVar(&e.options.Results, "results", "", "`WAY` in which results are collected: "+dispatch.ResultsHelp())
	c.Flags().BoolVar(&e.dryRun, "dry-run", false, "with --on, create the run directory and print the tasks without submitting them")
	c.Flags().StringVar(follow, "follow", "", "follow the tasks of the run in `DIR` until they are done")
}

// engineRules are the rules of the flags of engines.
var engineRules = []flagRule{
	{flag: "dry-run", requires: "on"}, {flag: "sbatch", requires: "on"}, {flag: "image", requires: "on"}, {flag: "results", requires: "on"},
}

// flagRule states which flags a flag requires and excludes.
type flagRule struct {
	flag     string
	requires string // "" for none
	excludes []string
}

// checkFlags returns a usage error for the first rule that the given flags violate.
func checkFlags(given *pflag.FlagSet, rules []flagRule) error {
	for _, r := range rules {
		if !given.Changed(r.flag) {
			continue
		}
		if r.requires != "" && !given.Changed(r.requires) {
			return fmt.Errorf("%w: --%s requires --%s", cli.ErrUsage, r.flag, r.requires)
		}
		for _, other := range r.excludes {
			if given.Changed(other) {
				return fmt.Errorf("%w: --%s excludes --%s", cli.ErrUsage, r.flag, other)
			}
		}
	}
	return nil
}

// onEngine returns true if an engine runs the trials: that of --on, or that of the resumed run.
func (f *runFlags) onEngine() (bool, error) {
	if f.resume == "" {
		return f.engine.on != "", nil
	}
	_, err := dispatch.ReadState(f.resume)
	if errors.Is(err, dispatch.ErrNoExecutor) {
		return false, nil
	}
	return err == nil, err
}

func (a *app) dispatchConfig(f runFlags, c runner.Config) dispatch.Config {
	return dispatch.Config{Config: c, On: f.engine.on, Options: f.engine.options, Cancel: a.promptCancel()}
}

// dispatchRun runs or resumes a run on an engine, and returns its directory.
func (a *app) dispatchRun(ctx context.Context, f runFlags, c runner.Config) (string, error) {
	if f.resume != "" {
		return f.resume, dispatch.Resume(ctx, f.resume, a.dispatchConfig(f, c))
	}
	return dispatch.Run(ctx, a.dispatchConfig(f, c))
}

// printTasks prints the tasks that would be submitted.
func (a *app) printTasks(ctx context.Context, f runFlags, c runner.Config) error {
	dir, err := dispatch.Print(ctx, a.dispatchConfig(f, c), a.Out)
	if err == nil {
		printed := filepath.Join(dir, executor.Folder, "*"+executor.PrintedSuffix)
		fmt.Fprintf(a.Err, "plan: %s\ntasks: %s\nsubmit the tasks under their own names, then run: skerry run --follow %s\n", dir, printed, dir)
	}
	return err
}

// promptCancel returns a function that asks whether an interrupted command cancels its tasks. Without a terminal it
// returns nil, and the tasks run on.
func (a *app) promptCancel() func() bool {
	in, is := a.In.(*os.File)
	if !is || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func() bool {
		fmt.Fprint(a.Err, "\nLeave the tasks running, or cancel them? [L/c] ")
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "c")
	}
}

// followRun shows the progress of a run on an engine. If no other process controls the run, it resumes it.
func (a *app) followRun(ctx context.Context, f runFlags) error {
	if _, err := dispatch.ReadState(f.follow); err != nil {
		return err
	}
	running, err := dispatch.Follow(ctx, f.follow, a.Progress())
	if err != nil || running {
		return err
	}
	f.resume, f.follow = f.follow, ""
	return a.run(ctx, f, "")
}
