package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/load"
)

// newAgentLoad is the load driver as a process of its own, told what to do by its first
// line of input.
func newAgentLoad(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "load",
		Short: "Drive a database with a workload",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return load.ServeAgent(cmd.Context(), a.In, a.Out, openDatabase)
		},
	}
}
