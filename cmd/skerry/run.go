package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/database/all"
	"skerry/internal/kernel/realtime"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/run/runner"
	"skerry/web"
)

type runFlags struct {
	out, resume string
	only        string
	follow      string
	engine      engineFlags
	sets, from  []string
	fast        bool
	suspect     bool
	strict      bool
	retries     int
	parallel    string
	machines    string
	ui          uiFlags
}

// runRules are the rules of the flags of skerry run, with engineRules.
var runRules = []flagRule{
	{flag: "resume", excludes: []string{
		"out", "set", "fast", "retries", "parallel", "on", "sbatch", "image", "results", "dry-run", "follow",
	}},
	{flag: "follow", excludes: []string{"on", "sbatch", "image", "results", "dry-run"}},
	{flag: "only", requires: "resume", excludes: []string{"ui", "open", "ui-keep", "strict", "machines"}},
	{flag: "suspect", requires: "resume"},
	{flag: "machines", excludes: []string{"on"}},
}

// uiFlags are the flags of the dashboard of a run.
type uiFlags struct {
	on, open, keep bool
	listen         string
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment and report the results",
		Long: "Run every trial of an experiment, each on its own lab and cluster, which are removed when the trial ends.\n" +
			"Completed trials are always kept. Ctrl-C ends the current trial, and --resume continues the run. A trial that is\n" +
			"suspect because the machine was disturbed is repeated once, after all others.\n" +
			"\n" +
			"The exit code is 0 when every trial measured, 1 when one failed, and 2 when the file is invalid (nothing was\n" +
			"started). It is 3 when all trials measured and an assertion of the file failed, or when a trial is suspect and\n" +
			"--strict is given. It is 130 when the run was interrupted.",
		Example: `  skerry run experiments/quickstart.yaml
  skerry run experiments/fhc/latency.yaml --fast
  skerry run experiments/fhc/latency.yaml --parallel auto
  skerry run my.yaml --set workload.threads=64 --set repetitions=5
  skerry run experiments/quickstart.yaml --ui
  skerry run --resume runs/latest
  skerry run --resume runs/latest --suspect
  skerry run --resume runs/latest --only 17
  skerry run my.yaml --on slurm:debug --sbatch=--account=lab
  skerry run experiments/quickstart.yaml --machines machines.yaml
  skerry run --follow runs/latest`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(cmd.Flags(), append(runRules, engineRules...)); err != nil {
				return err
			}
			if f.follow != "" && len(args) > 0 {
				return fmt.Errorf("%w: --follow excludes an experiment file", cli.ErrUsage)
			}
			if f.follow == "" && (len(args) > 1 || (f.resume == "") != (len(args) == 1)) {
				return advice.With(fmt.Errorf("%w: one experiment file or --resume DIR required", cli.ErrUsage), "see skerry run --help")
			}
			f.ui.on = f.ui.on || f.ui.open || f.ui.keep
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("retries") {
				f.sets = append(f.sets, fmt.Sprintf("retries=%d", f.retries))
			}
			if cmd.Flags().Changed("parallel") {
				f.sets = append(f.sets, "parallel="+f.parallel)
			}
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			if f.follow != "" {
				return a.followRun(cmd.Context(), f)
			}
			return a.run(cmd.Context(), f, file)
		},
	}
	c.Flags().StringVar(&f.out, "out", "runs", "create the run directory in `DIR`")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "override a value of the experiment: `PATH=VALUE` (repeatable)")
	_ = c.RegisterFlagCompletionFunc("set", completeSets) // fails only for an unknown flag
	c.Flags().BoolVar(&f.fast, "fast", false, "run a short smoke test, as defined by fast: in the file")
	c.Flags().StringVar(&f.resume, "resume", "", "resume the run in `DIR`")
	c.Flags().StringVar(&f.only, "only", "",
		"with --resume, run only these trials, in parallel with other processes: `LIST` such as 17 or 3,5-8, or @FILE[:LINE]")
	c.Flags().BoolVar(&f.suspect, "suspect", false, "with --resume, also repeat suspect trials")
	c.Flags().IntVar(&f.retries, "retries", 1, "repeat a suspect trial up to `N` times where that may help (default: the file)")
	c.Flags().StringVar(&f.parallel, "parallel", "1", "run up to `N` trials at once; auto fits them to this machine (default: the file)")
	c.Flags().BoolVar(&f.strict, "strict", false, "also exit with code 3 when a trial is suspect")
	c.Flags().StringArrayVar(&f.from, "from", nil, "use another build of a database: `NAME=PATH` (repeatable)")
	_ = c.RegisterFlagCompletionFunc("from", completeFrom)
	c.Flags().BoolVar(&f.ui.on, "ui", false, "serve the dashboard during the run, and print its address")
	c.Flags().BoolVar(&f.ui.open, "open", false, "with the dashboard, open a browser")
	c.Flags().BoolVar(&f.ui.keep, "ui-keep", false, "keep serving the dashboard after the run, until Ctrl-C")
	c.Flags().StringVar(&f.ui.listen, "ui-listen", "127.0.0.1:0", "serve the dashboard on `HOST:PORT`; see skerry serve")
	c.Flags().StringVar(&f.machines, "machines", "",
		"run each lab on the machines in a machines `FILE`, placed by place: in the experiment (default: the experiment's machines)")
	f.engine.flags(c, &f.follow)
	return c
}

// run runs or resumes an experiment and prints the results.
func (a *app) run(ctx context.Context, f runFlags, file string) (err error) {
	c, err := a.runConfig(f, file)
	if err != nil {
		return err
	}
	if f.only != "" {
		return a.runOnly(ctx, f, c)
	}
	onEngine, err := f.onEngine()
	if err != nil {
		return err
	}
	if onEngine && c.Experiment.Machines.IsSet() {
		return advice.With(fmt.Errorf("%w: an engine runs each trial on one machine, but the experiment has machines", cli.ErrUsage),
			"remove machines: or --on")
	}
	if f.engine.dryRun {
		return a.printTasks(ctx, f, c)
	}
	ui, err := a.openRunDashboard(f)
	if err != nil {
		return err
	}
	if !onEngine {
		if err := a.prepareRun(ctx, c.Experiment.NeedsLab()); err != nil {
			return err
		}
	}
	if ui != nil {
		defer func() { err = errors.Join(err, ui.close()) }()
		ui.start(context.WithoutCancel(ctx)) // the dashboard also shows how an interrupted run ends
		a.announce(ctx, ui, "#/live", f.ui.open)
	}
	dir := f.resume
	switch {
	case onEngine:
		dir, err = a.dispatchRun(ctx, f, c)
	case dir != "":
		err = runner.Resume(ctx, dir, c)
	default:
		dir, err = runner.Run(ctx, c)
	}
	complete := err == nil || errors.Is(err, runner.ErrTrials) || errors.Is(err, runner.ErrAssertions) || errors.Is(err, runner.ErrSuspect)
	if dir != "" && complete {
		err = errors.Join(err, a.present(dir))
	}
	if ui != nil && f.ui.keep && ctx.Err() == nil {
		fmt.Fprintf(a.Err, "serving the dashboard at %s until Ctrl-C\n", ui.url)
		<-ctx.Done()
	}
	return err
}

// runOnly runs the trials that --only selects.
func (a *app) runOnly(ctx context.Context, f runFlags, c runner.Config) error {
	only, err := runner.ParseTrials(f.only)
	if err != nil {
		return err
	}
	if err := a.prepareRun(ctx, c.Experiment.NeedsLab()); err != nil {
		return err
	}
	return runner.Work(ctx, f.resume, c, only)
}

// runConfig reads the experiment from the file, or from the run directory of a resumed run.
func (a *app) runConfig(f runFlags, file string) (runner.Config, error) {
	c := runner.Config{
		Out: f.out, StateDir: a.stateDir, Suspect: f.suspect, Strict: f.strict,
		Version: version, Command: os.Args, Progress: a.Progress(), Log: a.Log,
	}
	var source record.File
	var err error
	if f.resume != "" {
		source, err = runner.ReadRunSource(f.resume, f.from)
	} else {
		source, err = runner.ReadExperiment(file, f.sets, f.from, f.fast)
	}
	if err != nil {
		return c, err
	}
	if f.machines != "" {
		set, err := onMachines(f.machines)
		if err != nil {
			return c, err
		}
		source.Set = append(slices.Clone(source.Set), set)
	}
	return a.configOf(c, source)
}

// configOf completes a configuration with the experiment of a source.
func (a *app) configOf(c runner.Config, source record.File) (runner.Config, error) {
	if err := c.SetSource(source, all.Databases()); errors.Is(err, runner.ErrSource) {
		return c, err
	} else if err != nil {
		fmt.Fprintln(a.Err, err)
		return c, fmt.Errorf("%w: %s is not a valid experiment", cli.ErrUsage, source.Path)
	}
	for _, note := range c.Experiment.UnusedSettings(c.Databases) {
		fmt.Fprintln(a.Err, "note:", note)
	}
	c.Urgent = realtime.Current()
	var err error
	c.Exe, err = executable()
	return c, err
}

// openRunDashboard opens the dashboard of a run. It returns nil without --ui.
func (a *app) openRunDashboard(f runFlags) (*dashboard, error) {
	if !f.ui.on {
		return nil, nil
	}
	folder := f.out
	if f.resume != "" {
		folder, _ = folderOf(f.resume)
	}
	ui, err := a.openDashboard(folder, f.ui.listen, nil)
	if err != nil {
		return nil, err
	}
	return ui, ui.passListener()
}

// present prints the table of a run and writes its report, if this binary has a front end.
func (a *app) present(dir string) error {
	d, err := record.Open(dir)
	if err != nil {
		return err
	}
	if err := report.Text(a.Out, d, report.TextOptions{Width: a.Width()}); err != nil {
		return err
	}
	path, err := a.writeReport("", d)
	if errors.Is(err, web.ErrNotBuilt) {
		fmt.Fprintf(a.Err, "note: %v (%s)\n", err, advice.Of(err))
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, "\nreport:", path)
	return err
}
