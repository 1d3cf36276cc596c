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
		Short: "Keep what a cluster holds in a file",
		Long: "Write what a member's database holds to FILE: all rows as of one index of the log, with a checksum, while it serves.\n" +
			"The file is there when it is whole, and nothing is overwritten. --verify reads one that is there to its end.",
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
	c.Flags().StringVar(&at, "from", defaultAPI, "a member with a database, `HOST:PORT`")
	c.Flags().BoolVar(&verify, "verify", false, "read the file and check it")
	c.Flags().BoolVar(&asJSON, "json", false, "print what it holds as JSON")
	reach.add(c)
	return c
}

func printBackup(a *cli.App, s backup.Summary, path string, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(s)
	}
	_, err := fmt.Fprintf(a.Out, "%s: cluster %s as of index %d, %d tables, %d rows, %d bytes\nsha256 %s\n", path, s.Cluster, s.Index, len(s.Tables), s.Rows, s.Bytes, s.SHA256)
	return err
}

func newRestore(a *cli.App) *cobra.Command {
	var reach reachFlags
	var to []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup into an empty cluster",
		Long: "Put the tables and rows of a backup into a cluster that holds no rows; any other is refused. The file is checked to its\n" +
			"end before anything is written. Rows get new versions, and idempotency keys of the time before are forgotten.",
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
	c.Flags().StringSliceVar(&to, "to", []string{defaultAPI}, "members, or load balancers, `HOST:PORT`")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was restored as JSON")
	reach.add(c)
	return c
}
