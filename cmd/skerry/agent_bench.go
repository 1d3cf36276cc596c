package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/bench/dbbench"
	"skerry/internal/database/all"
)

// newAgentBench is the client's side of `skerry bench database`, on the client's node.
func newAgentBench(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "bench",
		Short: "Measure a database's client, or write while members come and go",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dbbench.Serve(cmd.Context(), a.in, a.out, all.Databases())
		},
	}
}
