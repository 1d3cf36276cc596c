package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/hydra"
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

func newAdopt(a *cli.App) *cobra.Command {
	var file, at string
	var discard, asJSON bool
	c := hydra.Defaults()
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Start a new log from the contents of a database",
		Long: "Start a new log from the contents of a member's database, when the old log is lost or too short. First stop all\n" +
			"members, and move the old logs away (DIR/log of each). Run the command at the database to continue from. Then run it\n" +
			"with the printed --at at every other member, including witnesses. Databases of other clouds are rebuilt from the\n" +
			"first one. A database with rows of another log is left unchanged, unless --discard is given. Members are configured\n" +
			"as for hydra node.",
		Example: `  hydra adopt --config a1.yaml
  hydra adopt --config b1.yaml --at 3f0c88a1c5e94b0f8f4d6a2b7c1e9d55@1048 --discard
  hydra adopt --config w.yaml --at 3f0c88a1c5e94b0f8f4d6a2b7c1e9d55@1048`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "read the configuration of the member from a YAML `FILE`")
	cmd.Flags().StringVar(&at, "at", "", "start the log that another member started, `NAME@INDEX`")
	cmd.Flags().BoolVar(&discard, "discard", false, "with --at, clear a database that holds rows of another log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the name and start of the log as JSON")
	lists := bindNode(cmd.Flags(), &c)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := memberOf(cmd, file, c, lists)
		if err != nil {
			return fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
		var where *hydra.LogStart
		if at != "" {
			b, err := hydra.ParseLogStart(at)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			where = &b
		}
		b, err := hydra.Adopt(cmd.Context(), c, where, discard)
		switch {
		case err != nil:
			return err
		case asJSON:
			return json.NewEncoder(a.Out).Encode(b)
		case where != nil:
			fmt.Fprintf(a.Out, "The log %s starts here after entry %d.\n", b.Log, b.After)
		default:
			fmt.Fprintf(a.Out, "The log %s continues after entry %d of %s's database.\n"+
				"Before starting members, run at every other member: hydra adopt --at %s\n", b.Log, b.After, c.Cloud, b)
		}
		return nil
	}
	return cmd
}
