package main

import (
	"context"
	"os"
	"os/exec"

	"skerry/cmd/internal/labprep"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
)

// prepare is the beginning of every command that creates labs.
func (a *app) prepare(ctx context.Context) error { return labprep.Prepare(ctx, a.App, a.stateDir) }

// join starts the command over inside the user namespace of a lab that has one.
func (a *app) join(l lab.Info) error {
	if l.Holder == nil || rootless.Inside() {
		return nil
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	return rootless.Join(*l.Holder, exe, os.Args[1:], labprep.Directories())
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
	cmd, err := rootless.Command(ctx, *l.Holder, exe, []string{"lab", "down", "--state-dir", a.stateDir, "--", l.Name}, labprep.Directories())
	if err != nil {
		return err
	}
	return a.hand(cmd)
}

// hand runs a command in place of this one.
func (a *app) hand(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	return cmd.Run()
}
