package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/link/tunnel"
)

// newAgentWireguard is the process of encrypted links, told what to do by its first line
// of input.
func newAgentWireguard(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "wireguard",
		Short: "Forward the packets of encrypted links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tunnel.Main(cmd.Context(), a.In, a.Out, a.Log)
		},
	}
}
