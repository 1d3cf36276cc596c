package main

import (
	"github.com/spf13/cobra"

	"skerry/cmd/internal/labprep"
)

func newLabSweep(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Remove the remains of killed commands",
		Long: "Remove the remains of commands that were killed, crashed or met a full disk: processes, namespaces, devices,\n" +
			"control groups and directories. Every command that creates a lab does this first. The command needs no disk space,\n" +
			"and removes only objects that skerry created.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return labprep.Sweep(cmd.Context(), a.App, a.stateDir) },
	}
}
