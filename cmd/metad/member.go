package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/metadata/client"
)

func newMember(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "member",
		Short: "Change the replicas of a running metadata server",
		Long: "Add or remove replicas of a running group. The other replicas need no restart. Give clients the new addresses.\n" +
			"`metad status` lists the replicas.",
	}
	var reach treeReach
	var within time.Duration
	add := &cobra.Command{
		Use:   "add ADDR NAME=PEER-ADDR",
		Short: "Add a replica to a group, and wait until it votes",
		Long: "Add a replica to the group at ADDR. Start the replica with --join on an empty directory first. The other replicas\n" +
			"reach it at PEER-ADDR. It receives the state of the group as a non-voting member. The leader makes it a voter when it\n" +
			"has caught up.",
		Example: "  metad serve --listen 10.0.0.4:8080 --data m4 --name m4 --join --member m4=10.0.0.4:9080 &\n" +
			"  metad member add 10.0.0.1:8080,10.0.0.2:8080 m4=10.0.0.4:9080",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, addr, ok := strings.Cut(args[1], "=")
			if !ok || name == "" || addr == "" {
				return fmt.Errorf("%w: %q is not NAME=PEER-ADDR", cli.ErrUsage, args[1])
			}
			with, err := reach.options(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			slow := fmt.Errorf("%s is still catching up after %v", name, within)
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), within, slow)
			defer cancel()
			if err := m.AddMember(ctx, name, addr); err != nil {
				return err
			}
			if err := m.AwaitVote(ctx, name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is a voting replica\n", name)
			return err
		},
	}
	add.Flags().DurationVar(&within, "timeout", 10*time.Minute, "time to wait until the replica votes")
	remove := &cobra.Command{
		Use:   "remove ADDR NAME",
		Short: "Remove a replica from a group",
		Long: "Remove a replica from the group at ADDR. A running replica stops by itself. A leader transfers its leadership first.\n" +
			"The name cannot be reused.",
		Example: "  metad member remove 10.0.0.1:8080 m4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.options(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			if err := m.RemoveMember(cmd.Context(), args[1]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is removed\n", args[1])
			return err
		},
	}
	reach.add(add)
	reach.add(remove)
	c.AddCommand(add, remove)
	return c
}
