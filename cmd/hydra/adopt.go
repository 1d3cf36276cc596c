package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/systems/hydra"
)

func newAdopt(a *cli.App) *cobra.Command {
	var file, at string
	var discard, asJSON bool
	c := hydra.Defaults()
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Begin a new log with what a database holds",
		Long: "Begin a new log that goes on after what a member's database holds, where the log that led to it is lost or too short.\n" +
			"No member may run, and the old logs are moved away first (DIR/log of each). It is run where the database is that is to\n" +
			"be gone on with, and then, with what it says of the log (--at), at every other member, witnesses too. Other clouds'\n" +
			"databases are rebuilt from the first; one that holds rows of another log is left alone unless --discard says otherwise.\n" +
			"Members are named as for hydra node.",
		Example: `  hydra adopt --config a1.yaml
  hydra adopt --config b1.yaml --at 3f0c88a1c5e94b0f8f4d6a2b7c1e9d55@1048 --discard
  hydra adopt --config w.yaml --at 3f0c88a1c5e94b0f8f4d6a2b7c1e9d55@1048`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "read the member from a YAML `FILE`")
	cmd.Flags().StringVar(&at, "at", "", "begin the log that was begun elsewhere, `NAME@INDEX`")
	cmd.Flags().BoolVar(&discard, "discard", false, "with --at: empty a database that holds rows of another log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the log's name and beginning as JSON")
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
			fmt.Fprintf(a.Out, "The log %s begins here after entry %d.\n", b.Log, b.After)
		default:
			fmt.Fprintf(a.Out, "The log %s goes on after entry %d of %s's database.\nBefore members are started, at every other one: hydra adopt --at %s\n", b.Log, b.After, c.Cloud, b)
		}
		return nil
	}
	return cmd
}
