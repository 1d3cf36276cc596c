package main

import (
	"context"
	"os"
	"os/exec"

	"skerry/cmd/internal/labprep"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
)

// prepare prepares a command that creates labs: see labprep.Prepare.
func (a *app) prepare(ctx context.Context) error { return labprep.Prepare(ctx, a.App, a.stateDir) }

// join restarts the command in the user namespace of the lab, if the lab has one.
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

// remove removes a lab, from within its user namespace if it has one.
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
	return a.runInherited(cmd)
}

// runInherited runs a command with the standard streams of this one.
func (a *app) runInherited(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	return cmd.Run()
}
