package main

import (
	"github.com/spf13/cobra"

	"skerry/cmd/internal/labprep"
)

func newLabSweep(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Clear what commands that were killed have left",
		Long: "Clear what commands that were killed, crashed or met a full disk have left: processes, namespaces,\n" +
			"devices, control groups, directories. Every command that makes a lab does so first. It needs no room\n" +
			"on the disk, and touches nothing that skerry did not make.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return labprep.Sweep(cmd.Context(), a.App, a.stateDir) },
	}
}
