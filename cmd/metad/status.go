package main

import (
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/statustext"
)

func newStatus(a *cli.App) *cobra.Command {
	var reach treeReach
	var asJSON bool
	c := &cobra.Command{
		Use:     "status ADDR",
		Short:   "Print the status of a metadata server",
		Example: "  metad status 127.0.0.1:8080",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.options(a, args[0], bearer.Read)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			s, err := m.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(s)
			}
			w := client.NewStatusPoller(s.Servers, with...)
			defer w.Close()
			return statustext.WriteStatus(a.Out, s, w.Statuses(cmd.Context()))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	reach.add(c)
	return c
}
