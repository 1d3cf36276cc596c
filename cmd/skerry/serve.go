package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/all"
	"skerry/internal/kernel/rootless"
	"skerry/internal/record"
	"skerry/internal/report/webdata"
	"skerry/internal/serve"
	"skerry/web"
)

func newServe(a *app) *cobra.Command {
	var address string
	var open, allowCommands bool
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Serve the dashboard: live runs, past runs and comparisons",
		Long: "Serve the dashboard. It follows running experiments, injects events into them, and lists the runs of a folder with\n" +
			"their reports, notes and tags. DIR is a folder of run directories, by default runs, or one run directory. Ctrl-C\n" +
			"stops the server; runs in other terminals continue.\n" +
			"\n" +
			"The page New creates an experiment from a form, saves it in the working directory of skerry serve, and starts it.\n" +
			"The page Choose does the same for the needs of skerry choose, and follows choices. A run that was started from the\n" +
			"dashboard is interrupted when skerry serve ends. Continue it with skerry run --resume.\n" +
			"\n" +
			"The server listens on loopback only, unless --listen gives another address. Such an address requires a token of at\n" +
			"least 16 characters in the environment variable SKERRY_TOKEN. Prometheus metrics of the current trial are at\n" +
			"/metrics. Experiments that run commands on this machine or on nodes (command events, cluster:, exec:) start\n" +
			"from the dashboard only if it listens on loopback, or with --allow-commands. Injected events are recorded like\n" +
			"those of the experiment, and make their trial suspect.",
		Example: `  skerry serve
  skerry serve runs/latest --open
  SKERRY_TOKEN=$(openssl rand -hex 16) skerry serve --listen 0.0.0.0:8090`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "runs"
			if len(args) == 1 {
				dir = args[0]
			}
			folder, fragment := folderOf(dir)
			d, err := a.openDashboard(folder, address, a.launch(folder))
			if err != nil {
				return err
			}
			d.server.AllowCommands = d.server.AllowCommands || allowCommands
			d.start(cmd.Context())
			a.announce(cmd.Context(), d, fragment, open)
			d.done.Wait()
			return d.err
		},
	}
	c.Flags().StringVar(&address, "listen", "127.0.0.1:8090", "listen on `HOST:PORT`; port 0 selects a free port")
	c.Flags().BoolVar(&open, "open", false, "open a browser")
	c.Flags().BoolVar(&allowCommands, "allow-commands", false,
		"let browsers of other machines start experiments that run commands (command events, cluster: commands, exec: databases)")
	return c
}

// folderOf returns the folder of runs for a path, and the fragment of the first page for a single run.
func folderOf(path string) (folder, fragment string) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, ""
	}
	if _, err := os.Stat(filepath.Join(resolved, "run.json")); err != nil {
		return path, ""
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return path, ""
	}
	return filepath.Dir(resolved), "#/run/" + filepath.Base(resolved)
}

// launch returns a function that runs an experiment or a choice in its own process, with results in the folder runs or
// choices.
func (a *app) launch(runs string) serve.Launch {
	return func(ctx context.Context, file string, needs bool, said io.Writer) error {
		exe, err := executable()
		if err != nil {
			return err
		}
		args := []string{"run", file, "--out", runs}
		if needs {
			args = []string{"choose", file, "--out", choicesFolder}
		}
		if a.stateDir != "" {
			args = append(args, "--state-dir", a.stateDir)
		}
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Stdout, cmd.Stderr = said, said
		// Its own process group: Ctrl-C of the terminal does not reach the run a second time.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		err = cmd.Run()
		if needs && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cli.ExitAssert {
			return nil // no candidate meets the needs, which is an answer
		}
		if err != nil {
			return fmt.Errorf("skerry %s %s: %w", args[0], file, err)
		}
		return nil
	}
}

// tokenVariable is the environment variable of the dashboard's token. A flag would be visible to other users and in
// the recorded command line.
const tokenVariable = "SKERRY_TOKEN"

// dashboard is the web server of a command.
type dashboard struct {
	server   *serve.Server
	listener net.Listener
	url      string
	done     sync.WaitGroup
	stop     context.CancelFunc
	err      error
}

// openDashboard opens the listener; start serves on it.
func (a *app) openDashboard(runs, address string, launch serve.Launch) (*dashboard, error) {
	token := strings.TrimSpace(os.Getenv(tokenVariable))
	page, err := web.Dashboard()
	if err != nil {
		return nil, err
	}
	d := &dashboard{}
	if d.listener, err = serve.InheritedListener(); err != nil {
		return nil, err
	}
	if d.listener == nil {
		d.listener, err = serve.Listen(address, token)
		if errors.Is(err, serve.ErrToken) {
			err = fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
		if err != nil {
			return nil, err
		}
	}
	port := 0
	if t, ok := d.listener.Addr().(*net.TCPAddr); ok {
		port = t.Port
	}
	c := serve.Config{
		Token: token, Port: port, Version: version, Page: page, Report: a.writeRunReport, Launch: launch, Log: a.Log,
		Databases: all.Databases(), Registry: all.Registry(), Choices: choicesFolder,
		AllowCommands: serve.IsLoopback(d.listener),
	}
	if c.Runs, err = filepath.Abs(runs); err == nil {
		c.Experiments, err = os.Getwd()
	}
	if err == nil {
		d.server, err = serve.New(c)
	}
	if err != nil {
		return nil, errors.Join(err, d.listener.Close())
	}
	d.url = serve.URL(d.listener.Addr())
	return d, nil
}

// writeRunReport writes the report of a run for the dashboard.
func (a *app) writeRunReport(w io.Writer, d *record.Dir) error {
	page, err := a.reportPage()
	if err != nil {
		return err
	}
	return webdata.Write(w, page, d)
}

// passListener passes the listener to the process that restarts this command in a user namespace, if it will.
func (d *dashboard) passListener() error {
	if rootless.Inside() {
		return nil
	}
	needed, err := rootless.Needed()
	if err != nil || !needed {
		return err
	}
	return serve.PassListener(d.listener)
}

// start serves until close is called or ctx ends.
func (d *dashboard) start(ctx context.Context) {
	ctx, d.stop = context.WithCancel(ctx)
	d.done.Go(func() { d.err = d.server.Serve(ctx, d.listener) })
}

func (d *dashboard) close() error {
	d.stop()
	d.done.Wait()
	return d.err
}

// announce prints the address of the dashboard, and opens a browser if open is set.
func (a *app) announce(ctx context.Context, d *dashboard, fragment string, open bool) {
	fmt.Fprintf(a.Err, "dashboard: %s%s\n", d.url, fragment)
	if os.Getenv(tokenVariable) != "" {
		fmt.Fprintf(a.Err, "  log in with the token in %s\n", tokenVariable)
	}
	if open {
		if err := exec.CommandContext(ctx, "xdg-open", d.url+fragment).Run(); err != nil {
			fmt.Fprintf(a.Err, "note: opening a browser failed: %v\n", err)
		}
	}
}
