package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/hydra/backup"
)

func newBackup(a *cli.App) *cobra.Command {
	var reach reachFlags
	var at string
	var asJSON, verify bool
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a cluster to a file",
		Long: "Write the contents of a member's database to FILE: all rows at one index of the log, with a checksum. The member\n" +
			"keeps serving. FILE appears only when it is complete, and is never overwritten. --verify checks an existing file.",
		Example: "  hydra backup monday.hydra --from 10.0.0.1:7070\n  hydra backup monday.hydra --verify",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s backup.Summary
			var err error
			if verify {
				s, err = backup.Verify(args[0])
			} else {
				from := backup.Source{Endpoint: at}
				if from.TLS, err = reach.id.client(); err != nil {
					return err
				}
				if from.Token, err = a.Token(reach.tokenFile, bearer.Admin, from.TLS != nil, at); err != nil {
					return err
				}
				s, err = backup.Save(cmd.Context(), from, args[0])
			}
			if err != nil {
				return err
			}
			return printBackup(a, s, args[0], asJSON)
		},
	}
	c.Flags().StringVar(&at, "from", defaultAPI, "member with a database, `HOST:PORT`")
	c.Flags().BoolVar(&verify, "verify", false, "check an existing file")
	c.Flags().BoolVar(&asJSON, "json", false, "print a summary as JSON")
	reach.add(c)
	return c
}

func printBackup(a *cli.App, s backup.Summary, path string, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(s)
	}
	_, err := fmt.Fprintf(a.Out, "%s: cluster %s as of index %d, %d tables, %d rows, %d bytes\nsha256 %s\n",
		path, s.Cluster, s.Index, len(s.Tables), s.Rows, s.Bytes, s.SHA256)
	return err
}

func newRestore(a *cli.App) *cobra.Command {
	var reach reachFlags
	var to []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty cluster",
		Long: "Restore the tables and rows of a backup into a cluster without rows; other clusters are rejected. The whole file is\n" +
			"checked before anything is written. Rows get new versions. Idempotency keys from before the backup are lost.",
		Example: "  hydra restore monday.hydra --to 10.0.0.1:7070",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			data, err := reach.open(a, to)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, data.Close()) }()
			s, err := backup.Restore(cmd.Context(), data, args[0])
			if err != nil {
				return err
			}
			return printBackup(a, s, args[0], asJSON)
		},
	}
	c.Flags().StringSliceVar(&to, "to", []string{defaultAPI}, "members or load balancers, `HOST:PORT`")
	c.Flags().BoolVar(&asJSON, "json", false, "print a summary as JSON")
	reach.add(c)
	return c
}
