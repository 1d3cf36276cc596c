package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/metadata"
	"skerry/internal/metadata/client"
)

func newMetadataSettle(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "settle ADDR TRANSACTION commit|abort",
		Short: "End a transaction whose coordinator is gone for good",
		Long: "End a transaction that a server is prepared for, and that its coordinator can no longer tell the end of. `skerry\n" +
			"metadata status` lists a server's transactions. Servers end them by themselves as soon as the coordinator answers:\n" +
			"use this only where it never will. End it the same way on all servers that have it, by `commit` where one of them\n" +
			"no longer does or what it was to do is done there, else by `abort`.",
		Example: "  skerry metadata status 10.0.1.1:8080\n  skerry metadata settle 10.0.1.1:8080 18912f3c2b6a7d10-5f1c2a3b abort",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, known := map[string]metadata.Verb{"commit": metadata.Finish, "abort": metadata.Abort}[args[2]]
			if !known {
				return fmt.Errorf("%w: %q is neither commit nor abort", errUsage, args[2])
			}
			m := client.NewOwn(args[0])
			defer m.Close()
			if r := m.One(cmd.Context(), metadata.Step{Verb: verb, Txn: args[1]}.Command("/", "")); r.Err != nil {
				return r.Err
			}
			_, err := fmt.Fprintf(a.out, "%s is no longer held\n", args[1])
			return err
		},
	}
}
