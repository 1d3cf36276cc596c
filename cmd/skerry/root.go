package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/run/choose"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
	"skerry/web"
)

// version is what the build was made from; the Makefile sets it.
var version = "unknown"

// app is the environment of every subcommand.
type app struct {
	*cli.App
	stateDir string // directory of lab journals; "" for the default
	// reportPage returns the page of reports without data.
	reportPage func() ([]byte, error)
}

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := &app{App: cli.New(in, out, errw), reportPage: web.ReportPage}
	return a.Execute(ctx, newRoot(a), doubleDashes(args), exitCode)
}

// exitCode maps an error to its exit code, and returns 0 for any other error.
func exitCode(err error) int {
	for code, all := range map[int][]error{
		cli.ExitUsage:  {runner.ErrSource, compare.ErrCells, record.ErrNotRun, live.ErrInvalid},
		cli.ExitAssert: {runner.ErrAssertions, runner.ErrSuspect, choose.ErrNone},
	} {
		for _, one := range all {
			if errors.Is(err, one) {
				return code
			}
		}
	}
	return cli.ExitOK
}

func newRoot(a *app) *cobra.Command {
	root := cli.NewRoot(a.App, "skerry", "A laboratory for distributed databases on fragmented clouds", version)
	root.PersistentFlags().StringVar(&a.stateDir, "state-dir", "", "`DIR` of lab journals (default $SKERRY_STATE, else /run/skerry)")
	addCommands(root, a)
	cli.Complete(root)
	return root
}

// executable returns the path of this program, which also runs the agents (emulator, load driver).
func executable() (string, error) { return os.Executable() }
