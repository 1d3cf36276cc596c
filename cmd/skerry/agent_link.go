package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/link/userspace"
)

// newAgentLink is the process of the userspace link engine, configured by its first line
// of input.
func newAgentLink(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "link",
		Short: "Forward the packets of emulated links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return userspace.Main(cmd.Context(), a.In, a.Out, a.Log)
		},
	}
}
