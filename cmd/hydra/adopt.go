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
