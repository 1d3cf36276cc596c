package main

import "github.com/spf13/cobra"

// newAgentHold is the process that keeps the user namespace of a rootless lab.
func newAgentHold(_ *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hold",
		Short: "Hold the namespaces of a rootless lab",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
}
