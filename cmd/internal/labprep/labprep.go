// Package labprep prepares commands that create labs: it removes the remains of killed commands and enters a user
// namespace if the command does not run as root.
package labprep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
	"skerry/internal/machine/journal"
)

// Prepare is the beginning of every command that creates labs. Without root it restarts the command line of this
// process inside a user namespace. An error of another lab's remains is a warning, since it does not keep this lab
// from being created.
func Prepare(ctx context.Context, a *cli.App, stateDir string) error {
	if rootless.Inside() {
		return nil // prepared outside
	}
	if err := Sweep(ctx, a, stateDir); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		Warn(a, err)
	}
	needed, err := rootless.Needed()
	if err != nil || !needed {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("locate this program: %w", err)
	}
	return rootless.Enter(ctx, exe, os.Args[1:], Directories())
}

// Warn prints an error, if any, as a warning, with its advice.
func Warn(a *cli.App, err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(a.Err, "warning:", err)
	if next := advice.Of(err); next != "" {
		fmt.Fprintln(a.Err, "  "+next)
	}
}

// Sweep undoes the commands of killed runs, removes the remains of labs whose commands were killed, and prints both.
func Sweep(ctx context.Context, a *cli.App, stateDir string) error {
	undoErr := UndoCommands(ctx, a)
	cleared, err := lab.Sweep(ctx, stateDir)
	if len(cleared) > 0 {
		fmt.Fprintf(a.Err, "removed the remains of a killed command: %s\n", strings.Join(cleared, ", "))
	}
	if err := errors.Join(undoErr, err); err != nil {
		return fmt.Errorf("remove the remains of a killed command: %w", err)
	}
	return nil
}

// UndoCommands undoes the command events of killed runs, and prints their commands.
func UndoCommands(ctx context.Context, a *cli.App) error {
	undone, err := journal.SweepUndos(ctx, journal.UndosDir(""))
	for _, of := range undone {
		fmt.Fprintf(a.Err, "undid a command of a killed run: %s\n", of)
	}
	return err
}

// Directories returns environment variables with this user's default directories, which differ for root of a user
// namespace.
func Directories() []string {
	return []string{"SKERRY_STATE=" + journal.DefaultStateDir(), "SKERRY_DATA=" + journal.DefaultDataDir()}
}
