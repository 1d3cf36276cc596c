package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/progress"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/run/choose"
	"skerry/internal/run/live"
	"skerry/internal/run/runner"
	"skerry/web"
)

// Exit codes, documented in docs/commands.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2 // bad flags, bad experiment
	exitAssert      = 3 // every trial measured, an assertion did not hold, or with --strict one is suspect
	exitInterrupted = 130
)

// version is what the build was made from; the Makefile sets it.
var version = "unknown"

// errUsage marks errors that are the caller's: nothing was started.
var errUsage = errors.New("usage")

// app is what every subcommand gets.
type app struct {
	out, err io.Writer
	in       io.Reader
	reporter *progress.Reporter // logs go through it, so that no live line swallows them
	log      *slog.Logger
	level    *slog.LevelVar
	stateDir string // of labs; "" for the default
	// reportPage is the page of reports without data.
	reportPage func() ([]byte, error)
}

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	level := new(slog.LevelVar)
	level.Set(slog.LevelWarn)
	a := &app{in: in, out: out, err: errw, level: level, reporter: reporter(errw), reportPage: web.ReportPage}
	a.log = slog.New(slog.NewTextHandler(a.reporter, &slog.HandlerOptions{Level: level}))
	root := newRoot(a)
	root.SetArgs(doubleDashes(args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status): // of a command on a node, which has said what there is to say
		return int(status)
	}
	fmt.Fprintln(errw, "skerry:", err)
	if next := advice.Of(err); next != "" {
		fmt.Fprintln(errw, "  "+next)
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errUsage), errors.Is(err, runner.ErrSource), errors.Is(err, compare.ErrCells), errors.Is(err, record.ErrNotRun), errors.Is(err, live.ErrInvalid):
		return exitUsage
	case errors.Is(err, runner.ErrAssertions), errors.Is(err, runner.ErrSuspect), errors.Is(err, choose.ErrNone):
		return exitAssert
	}
	return exitError
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "skerry",
		Short:         "A laboratory for distributed databases on fragmented clouds",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().BoolP("verbose", "v", false, "say what is done, on stderr")
	root.PersistentFlags().StringVar(&a.stateDir, "state-dir", "", "keep the journals of labs in `DIR` (default $SKERRY_STATE, else /run/skerry)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if v, err := cmd.Flags().GetBool("verbose"); err == nil && v {
			a.level.Set(slog.LevelDebug)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
	})
	addCommands(root, a)
	root.InitDefaultCompletionCmd()
	tellUsage(root)
	return root
}

// executable is the program that agents (the emulator, the load driver) are started from.
func executable() (string, error) { return os.Executable() }
