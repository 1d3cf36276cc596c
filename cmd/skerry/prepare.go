package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
	"skerry/internal/machine/statedir"
)

// prepare is the beginning of every command that makes labs: it clears what others have
// left and, without root, starts the command over inside a user namespace.
func (a *app) prepare(ctx context.Context) error {
	if rootless.Inside() {
		return nil // it was done outside
	}
	if err := a.sweep(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintln(a.err, "warning:", err) // of other labs, which need not keep this one from being made
		if next := advice.Of(err); next != "" {
			fmt.Fprintln(a.err, "  "+next)
		}
	}
	needed, err := rootless.Needed()
	if err != nil || !needed {
		return err
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	return rootless.Enter(ctx, exe, os.Args[1:], directories())
}

// join starts the command over inside the user namespace of a lab that has one.
func (a *app) join(l lab.Info) error {
	if l.Holder == nil || rootless.Inside() {
		return nil
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	return rootless.Join(*l.Holder, exe, os.Args[1:], directories())
}

// remove ends a lab, from within its user namespace where it has one.
func (a *app) remove(ctx context.Context, l lab.Info) error {
	if l.Holder == nil || rootless.Inside() || l.State == lab.StateDead {
		return lab.Remove(ctx, a.stateDir, l.Name)
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	cmd, err := rootless.Command(ctx, *l.Holder, exe, []string{"lab", "down", "--state-dir", a.stateDir, "--", l.Name}, directories())
	if err != nil {
		return err
	}
	return a.hand(cmd)
}

// hand runs a command in place of this one.
func (a *app) hand(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	return cmd.Run()
}

// directories are the defaults of this user, which root of a user namespace would not have.
func directories() []string {
	return []string{"SKERRY_STATE=" + statedir.DefaultStateDir(), "SKERRY_DATA=" + statedir.DefaultDataDir()}
}
