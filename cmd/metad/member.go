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
		Long: "Take a replica into a running group, or out of it, while it serves. The others need not be restarted; give\n" +
			"clients the new addresses. `metad status` lists the replicas.",
	}
	var reach treeReach
	var within time.Duration
	add := &cobra.Command{
		Use:   "add ADDR NAME=PEER-ADDR",
		Short: "Take a replica into a group, and wait until it votes",
		Long: "Take a replica into the group that answers at ADDR: one that was started with --join on an empty directory, that\n" +
			"the others reach at PEER-ADDR. It learns what the group has, without a vote; the leader gives it one when it\n" +
			"has caught up.",
		Example: "  metad serve --listen 10.0.0.4:8080 --data m4 --name m4 --join --member m4=10.0.0.4:9080 &\n" +
			"  metad member add 10.0.0.1:8080,10.0.0.2:8080 m4=10.0.0.4:9080",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, addr, ok := strings.Cut(args[1], "=")
			if !ok || name == "" || addr == "" {
				return fmt.Errorf("%w: %q is not NAME=PEER-ADDR", cli.ErrUsage, args[1])
			}
			with, err := reach.with(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), within, fmt.Errorf("%s has no vote after %v: it goes on learning", name, within))
			defer cancel()
			if err := m.AddMember(ctx, name, addr); err != nil {
				return err
			}
			if err := m.AwaitVote(ctx, name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is a replica with a vote\n", name)
			return err
		},
	}
	add.Flags().DurationVar(&within, "timeout", 10*time.Minute, "wait so long for its vote")
	remove := &cobra.Command{
		Use:     "remove ADDR NAME",
		Short:   "Take a replica out of a group",
		Long:    "Take a replica out of the group that answers at ADDR. One that runs ends by itself; one that leads hands over\nfirst. Its name cannot be used again.",
		Example: "  metad member remove 10.0.0.1:8080 m4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.with(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			if err := m.RemoveMember(cmd.Context(), args[1]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is no replica any more\n", args[1])
			return err
		},
	}
	reach.add(add)
	reach.add(remove)
	c.AddCommand(add, remove)
	return c
}
