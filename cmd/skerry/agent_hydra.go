package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/bench/hydrabench"
)

// newAgentHydra is the clients' side of `skerry bench hydra`, on their node.
func newAgentHydra(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hydra",
		Short: "Drive Hydra or etcd, or watch one be lost",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return hydrabench.Serve(cmd.Context(), a.in, a.out) },
	}
}
