package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/serve"
)

func newServe(a *app) *cobra.Command {
	var address string
	var open bool
	c := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show runs in a browser: live, past, side by side",
		Long: "Serve the dashboard: a page that follows runs while they go on, fires events into them, and lists those\n" +
			"of a folder with their reports, notes and tags. DIR is the folder that run directories are in, by default\n" +
			"runs, or one run directory. Ctrl-C ends it; runs of other terminals go on.\n\n" +
			"On the page New an experiment is made by form, saved in the folder that skerry serve was called in, and started.\n" +
			"The page Choose does the same for the needs of skerry choose, and follows choices.\n" +
			"A run that was started there ends with skerry serve, as if by Ctrl-C: skerry run --resume goes on with it.\n\n" +
			"Only this machine can reach it, unless --listen gives another address. Then everyone must show the token\n" +
			"in the environment variable SKERRY_TOKEN, of 16 characters at least. Prometheus finds the metrics of the\n" +
			"trial at hand under /metrics. Events that are fired are recorded like those of the experiment, and make\n" +
			"their trial suspect.",
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
			d.start(cmd.Context())
			a.announce(cmd.Context(), d, fragment, open)
			d.done.Wait()
			return d.err
		},
	}
	c.Flags().StringVar(&address, "listen", "127.0.0.1:8090", "listen on `HOST:PORT`; port 0 is any that is free")
	c.Flags().BoolVar(&open, "open", false, "open a browser")
	return c
}

// folderOf is the folder of runs that a path means, and which of them the page begins with.
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

// launch runs experiments into a folder, or chooses into another one, each as a process of its own like one from a terminal.
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
		// A group of its own: Ctrl-C comes once, from here, and the run ends its trial in its own time.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		err = cmd.Run()
		if needs && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == cli.ExitAssert {
			return nil // the answer is that no candidate meets the needs
		}
		if err != nil {
			return fmt.Errorf("skerry %s %s: %w", args[0], file, err)
		}
		return nil
	}
}
