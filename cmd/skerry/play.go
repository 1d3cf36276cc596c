package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/record"
	"skerry/internal/run/draft"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
	"skerry/web"
)

func newPlay(a *app) *cobra.Command {
	d := draft.DefaultExperiment()
	d.Name, d.Assert, d.Threads, d.Endless = "play", nil, 16, true
	var scale float64
	ui := uiFlags{on: true}
	c := &cobra.Command{
		Use:   "play DATABASE",
		Short: "Run a database under load until Ctrl-C, and break it by hand",
		Long: "Create a cloud with a database, run a workload until Ctrl-C, and show everything on a live page. Click a link or a\n" +
			"node there to cut or kill it, or use skerry fire and skerry lab in another terminal; the commands are printed.\n" +
			"The lab and its measurements are removed at the end. To keep results, write an experiment with skerry init.",
		Example: `  skerry play redis
  skerry play etcd --topology mesh:5,rtt=40ms
  skerry play redis --workload c --scale 0.2 --open`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return databaseNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Database, d.Scales = args[0], []float64{scale}
			if cmd.Flags().Changed("topology") && !cmd.Flags().Changed("client") {
				d.Client = ""
			}
			return a.play(cmd.Context(), d, ui)
		},
	}
	c.Flags().StringVar(&d.Topology, "topology", d.Topology, "preset or topology `FILE`; skerry init --help lists the presets")
	c.Flags().StringVar(&d.Client, "client", d.Client, "`SITE` of the client (default for another topology: its first site)")
	c.Flags().StringVar(&d.Workload, "workload", d.Workload, "workload of an experiment: a to f, mdtest, namespace")
	c.Flags().Int64Var(&d.Records, "records", d.Records, "records in the table at the start")
	c.Flags().IntVar(&d.Threads, "threads", d.Threads, "client threads, each with one operation in flight")
	c.Flags().Float64Var(&scale, "scale", 1, "factor of every distance")
	c.Flags().BoolVar(&ui.open, "open", false, "open a browser")
	c.Flags().StringVar(&ui.listen, "ui-listen", "127.0.0.1:0", "serve the live page on `HOST:PORT`; see skerry serve")
	return c
}

// play runs an endless draft in a temporary directory.
func (a *app) play(ctx context.Context, d draft.Experiment, ui uiFlags) (err error) {
	text, v, err := d.Check("play.yaml", all.Databases())
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see skerry play --help")
	}
	out := filepath.Join(os.TempDir(), "skerry-play-"+rand.Text())
	page, err := a.openRunDashboard(runFlags{out: out, ui: ui})
	if errors.Is(err, web.ErrNotBuilt) {
		fmt.Fprintf(a.Err, "note: no live page: %v\n", err)
	} else if err != nil {
		return err
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	// Only after prepare, which restarts the command if it does not run as root.
	if err := os.Mkdir(out, 0o700); err != nil {
		return fmt.Errorf("create run directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	if page != nil {
		page.start(context.WithoutCancel(ctx))
		defer func() { err = errors.Join(err, page.close()) }()
	}
	c := runner.Config{Out: out, StateDir: a.stateDir, Version: version, Command: os.Args, Progress: a.Progress(), Log: a.Log}
	source := record.File{Path: "play.yaml", Text: text}
	if c, err = a.configOf(c, source); err != nil {
		return err
	}
	if page != nil {
		a.announce(ctx, page, "#/live", ui.open)
	}
	a.printPlayCommands(filepath.Join(out, "latest"), draft.NewPlaces(v.Cloud()))
	_, err = runner.Run(ctx, c)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.Err, "ended; lab and results removed")
		return nil
	}
	return err
}

// printPlayCommands prints commands that break the running lab.
func (a *app) printPlayCommands(run string, p draft.Places) {
	fmt.Fprintf(a.Err, "Stop with Ctrl-C. In another terminal:\n")
	for _, o := range event.Offers() {
		switch {
		case o.ID == "kill" && len(p.Nodes) > 0:
			fmt.Fprintf(a.Err, "  skerry fire --run %s 'kill: {nodes: %s}, for: 10s'\n", run, p.Nodes[0])
		case o.ID == "cut" && len(p.Links) > 0:
			fmt.Fprintf(a.Err, "  skerry fire --run %s 'link_down: {ids: %s}, for: 10s'\n", run, p.Links[0])
		}
	}
	fmt.Fprintf(a.Err, "  skerry lab status\n")
}

func newFire(a *app) *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "fire EVENT",
		Short: "Inject an event into a running experiment",
		Long: "Inject an event into the trial that is measuring now. EVENT has the syntax of an experiment file. for: sets the\n" +
			"duration; without it the event lasts until the trial ends. The event is recorded like the experiment's own\n" +
			"events, and makes its trial suspect. docs/events.md lists the kinds of events.\n" +
			"\n" +
			"The exit code is 2 when the event is invalid, and 1 when no trial is measuring.",
		Example: `  skerry fire 'kill: {nodes: Pune}, for: 10s'
  skerry fire 'link_down: {between: [Pune, Seoul]}, for: 5s'
  skerry fire 'latency: {of: Melbourne, scale: 3}' --run runs/latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.TrimSpace(args[0])
			if !strings.HasPrefix(text, "{") {
				text = "{" + text + "}"
			}
			e, err := live.SendEvent(cmd.Context(), dir, []byte(text))
			if errors.Is(err, live.ErrNotLive) {
				return advice.With(err, "start one with skerry run or skerry play, and name its directory with --run DIR")
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(e)
			}
			_, err = fmt.Fprintf(a.Out, "fired: %s\n", e.Message)
			return err
		},
	}
	c.Flags().StringVar(&dir, "run", "runs/latest", "run directory `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the recorded event as JSON")
	return c
}
