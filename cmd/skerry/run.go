package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skerry/internal/advice"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/progress"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/runner"
)

type runFlags struct {
	out, resume string
	sets, from  []string
	fast        bool
	suspect     bool
	ui          uiFlags
}

// uiFlags are of the dashboard beside a run.
type uiFlags struct {
	on, open, keep bool
	listen         string
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment and report what happened",
		Long: "Run every trial of an experiment: each on a lab and a cluster of its own, which are gone when it\n" +
			"ends. Finished trials are kept whatever happens; Ctrl-C ends the trial at hand, and --resume goes on.\n\n" +
			"The exit code is 0 when every trial measured, 1 when one failed, 2 when the file is wrong (nothing\n" +
			"was started then), 3 when all measured and an assertion of the file did not hold, and 130 when the\n" +
			"run was interrupted.",
		Example: `  skerry run experiments/quickstart.yaml
  skerry run experiments/fhc/latency.yaml --fast
  skerry run my.yaml --set workload.threads=64 --set repetitions=5
  skerry run experiments/quickstart.yaml --ui
  skerry run --resume runs/latest
  skerry run --resume runs/latest --suspect`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || (f.resume == "") != (len(args) == 1) {
				return advice.With(fmt.Errorf("%w: give one experiment file, or --resume DIR", errUsage), "see skerry run --help")
			}
			if f.suspect && f.resume == "" {
				return fmt.Errorf("%w: --suspect goes with --resume DIR", errUsage)
			}
			f.ui.on = f.ui.on || f.ui.open || f.ui.keep
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			return a.run(cmd.Context(), f, file)
		},
	}
	c.Flags().StringVar(&f.out, "out", "runs", "make the run directory in `DIR`")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "set a value of the experiment: `PATH=VALUE` (repeatable)")
	c.Flags().BoolVar(&f.fast, "fast", false, "shrink to a smoke run, as the file says under fast:")
	c.Flags().StringVar(&f.resume, "resume", "", "go on with the interrupted run in `DIR`")
	c.Flags().BoolVar(&f.suspect, "suspect", false, "with --resume, also run suspect trials again")
	c.Flags().StringArrayVar(&f.from, "from", nil, "use another build of a database: `NAME=PATH` (repeatable)")
	c.Flags().BoolVar(&f.ui.on, "ui", false, "serve the dashboard while the run goes on, and say where")
	c.Flags().BoolVar(&f.ui.open, "open", false, "with the dashboard, open a browser")
	c.Flags().BoolVar(&f.ui.keep, "ui-keep", false, "go on serving the dashboard after the run, until Ctrl-C")
	c.Flags().StringVar(&f.ui.listen, "ui-listen", "127.0.0.1:0", "serve the dashboard on `HOST:PORT`; see skerry serve")
	for _, other := range []string{"out", "set", "fast"} {
		c.MarkFlagsMutuallyExclusive("resume", other)
	}
	return c
}

// run runs or resumes an experiment and shows what came of it.
func (a *app) run(ctx context.Context, f runFlags, file string) (err error) {
	source, err := sourceOf(f, file)
	if err != nil {
		return err
	}
	databases := all.Databases()
	e, err := experiment.Parse(source.Path, []byte(source.Text), source.Set, source.Fast)
	if err == nil {
		err = experiment.Check(e, databases)
	}
	if err != nil {
		fmt.Fprintln(a.err, err)
		return fmt.Errorf("%w: %s cannot be run as it is", errUsage, source.Path)
	}
	if len(f.from) > 0 {
		source.From = f.from // of a resumed run it may be another path to the same build
	}
	from, err := pairs(source.From)
	if err != nil {
		return err
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	var ui *dashboard
	if f.ui.on {
		folder := f.out
		if f.resume != "" {
			folder, _ = folderOf(f.resume)
		}
		if ui, err = a.openDashboard(folder, f.ui.listen); err != nil {
			return err
		}
		if err := ui.handOn(); err != nil {
			return err
		}
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	if ui != nil {
		defer func() { err = errors.Join(err, ui.close()) }()
		ui.start(context.WithoutCancel(ctx)) // to the run's end, which takes a while
		a.announce(ctx, ui, "#/live", f.ui.open)
	}
	c := runner.Config{
		Experiment: e, Source: source, Out: f.out, Databases: databases, From: from, Exe: exe,
		StateDir: a.stateDir, Suspect: f.suspect, Version: version, Command: os.Args, Progress: a.progress(), Log: a.log,
	}
	dir := f.resume
	if dir != "" {
		err = runner.Resume(ctx, dir, c)
	} else {
		dir, err = runner.Run(ctx, c)
	}
	if dir != "" && (err == nil || errors.Is(err, runner.ErrTrials) || errors.Is(err, runner.ErrAssertions)) {
		err = errors.Join(err, a.present(dir))
	}
	if ui != nil && f.ui.keep && ctx.Err() == nil {
		fmt.Fprintf(a.err, "the dashboard stays at %s until Ctrl-C\n", ui.url)
		<-ctx.Done()
	}
	return err
}

// sourceOf reads the experiment: the file, or what a run to be resumed was started with.
func sourceOf(f runFlags, file string) (record.File, error) {
	if f.resume != "" {
		d, err := record.Open(f.resume)
		if err != nil {
			return record.File{}, err
		}
		return d.Run.File, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return record.File{}, fmt.Errorf("%w: reading the experiment: %w", errUsage, err)
	}
	return record.File{Path: file, Text: string(text), Set: f.sets, Fast: f.fast, From: f.from}, nil
}

// present prints the table of a run and writes its report.
func (a *app) present(dir string) error {
	d, err := record.Open(dir)
	if err != nil {
		return err
	}
	if err := report.Text(a.out, d, report.TextOptions{Width: a.width()}); err != nil {
		return err
	}
	path, err := a.writeReport("", d, false)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, "\nreport:", path)
	return err
}

// progress goes to the terminal behind stderr, if it is one.
func (a *app) progress() *progress.Reporter {
	f, ok := a.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress.New(a.err, nil)
	}
	return progress.New(f, func() int {
		cols, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return cols
	})
}

// width is that of the terminal behind stdout, 0 when it is none.
func (a *app) width() int {
	if f, ok := a.out.(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil {
			return cols
		}
	}
	return 0
}

// pairs splits NAME=VALUE arguments.
func pairs(args []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range args {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("%w: %q is not NAME=PATH", errUsage, s)
		}
		out[name] = value
	}
	return out, nil
}
