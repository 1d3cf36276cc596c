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
	"golang.org/x/term"

	"skerry/cmd/internal/cli"
	"skerry/internal/run/dispatch"
	"skerry/internal/run/executor"
	"skerry/internal/run/runner"
)

// engineFlags are of runs whose trials an engine has measured.
type engineFlags struct {
	on      string
	dryRun  bool
	options dispatch.Options
}

// where are the flags that say which engine measures.
func (e *engineFlags) where(c *cobra.Command) {
	c.Flags().StringVar(&e.on, "on", "", "have the trials measured by an `ENGINE`: "+strings.Join(dispatch.Names(), ", "))
	c.Flags().StringArrayVar(&e.options.Sbatch, "sbatch", nil, "with --on slurm, pass an `OPTION` to sbatch, such as --sbatch=--account=lab (repeatable)")
	c.Flags().StringVar(&e.options.Image, "image", "", "with --on kubernetes, the `IMAGE` of the pods, with skerry and the databases")
}

func (e *engineFlags) flags(c *cobra.Command, follow *string) {
	e.where(c)
	c.Flags().StringVar(&e.options.Results, "results", "", "the `WAY` that results take home: "+dispatch.ResultsHelp())
	c.Flags().BoolVar(&e.dryRun, "dry-run", false, "with --on, make the run directory, print what would be submitted, and leave it at that")
	c.Flags().StringVar(follow, "follow", "", "show how the tasks of the run in `DIR` stand, until they are done")
}

func (e *engineFlags) given() bool {
	return e.on != "" || e.dryRun || len(e.options.Sbatch) > 0 || e.options.Image != "" || e.options.Results != ""
}

func (e *engineFlags) check() error {
	if e.given() && e.on == "" {
		return fmt.Errorf("%w: --dry-run, --sbatch, --image and --results go with --on ENGINE", cli.ErrUsage)
	}
	return nil
}

// onEngine tells whether trials are measured by an engine: the one of --on, or of the run that is
// resumed.
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

func (a *app) sweepConfig(f runFlags, c runner.Config) dispatch.Config {
	return dispatch.Config{Config: c, On: f.engine.on, Options: f.engine.options, Cancel: a.askCancel()}
}

// sweepRun runs or resumes a run on an engine, and returns its directory.
func (a *app) sweepRun(ctx context.Context, f runFlags, c runner.Config) (string, error) {
	if f.resume != "" {
		return f.resume, dispatch.Resume(ctx, f.resume, a.sweepConfig(f, c))
	}
	return dispatch.Run(ctx, a.sweepConfig(f, c))
}

// printSweep prints what would be submitted.
func (a *app) printSweep(ctx context.Context, f runFlags, c runner.Config) error {
	dir, err := dispatch.Print(ctx, a.sweepConfig(f, c), a.Out)
	if err == nil {
		fmt.Fprintf(a.Err, "the plan is in %s, and this in %s; edit and submit it by hand under the name that it has, then: skerry run --follow %s\n",
			dir, filepath.Join(dir, executor.Folder, "*"+executor.PrintedSuffix), dir)
	}
	return err
}

// askCancel asks on a terminal what becomes of tasks when the command is interrupted; elsewhere
// nobody can be asked, and they are left.
func (a *app) askCancel() func() bool {
	in, is := a.In.(*os.File)
	if !is || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return func() bool {
		fmt.Fprint(a.Err, "\nLeave the tasks to go on, or cancel them? [L/c] ")
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false
		}
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "c")
	}
}

// followRun shows a run on an engine: one that another process takes care of is looked at, one that nobody does is
// taken up.
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
