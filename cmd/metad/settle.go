package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
)

func newSettle(a *cli.App) *cobra.Command {
	older := cluster.LeftoverAge
	var reach treeReach
	c := &cobra.Command{
		Use:   "settle ADDR [TRANSACTION commit|abort]",
		Short: "Remove what died between servers, or end a transaction whose coordinator is gone for good",
		Long: "Without a transaction, remove from all servers that share the tree what clients and servers that died have left\n" +
			"there: copies of directories that were on their way, and empty subtrees to which nothing leads. Servers do so by\n" +
			"themselves when they have started, and every hour; subtrees when they have seen them for half an hour. What a\n" +
			"server that does not answer may need stays.\n\n" +
			"With one, end a transaction that a server is prepared for, and that its coordinator can no longer tell the end of.\n" +
			"`metad status` lists a server's transactions. Servers end them by themselves as soon as the coordinator\n" +
			"answers: use this only where it never will. End it the same way on all servers that have it, by `commit` where one\n" +
			"of them no longer does or what it was to do is done there, else by `abort`.",
		Example: "  metad settle 10.0.1.1:8080\n" +
			"  metad status 10.0.1.1:8080\n  metad settle 10.0.1.1:8080 18912f3c2b6a7d10-5f1c2a3b abort",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 3 {
				return fmt.Errorf("%w: give ADDR, or ADDR TRANSACTION commit|abort", cli.ErrUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return sweepServers(a, cmd, reach, args[0], older)
			}
			verb, known := map[string]metadata.Verb{"commit": metadata.Finish, "abort": metadata.Abort}[args[2]]
			if !known {
				return fmt.Errorf("%w: %q is neither commit nor abort", cli.ErrUsage, args[2])
			}
			with, err := reach.with(a, args[0], bearer.Write)
			if err != nil {
				return err
			}
			m := client.NewOwn(args[0], with...)
			defer m.Close()
			if r := m.DoOne(cmd.Context(), metadata.Step{Verb: verb, Txn: args[1]}.Command("/", "")); r.Err != nil {
				return r.Err
			}
			_, err = fmt.Fprintf(a.Out, "%s is no longer held\n", args[1])
			return err
		},
	}
	reach.add(c)
	c.Flags().DurationVar(&older, "older", older, "remove empty subtrees that are older than this; one that is being made is not")
	return c
}

// sweepServers removes what is left over on all servers.
func sweepServers(a *cli.App, cmd *cobra.Command, reach treeReach, addr string, older time.Duration) error {
	with, err := reach.with(a, addr, bearer.Write)
	if err != nil {
		return err
	}
	tree, err := cluster.Connect(cmd.Context(), addr, with...)
	if err != nil {
		return err
	}
	defer tree.Close()
	var errs []error
	for _, server := range slices.Sorted(maps.Keys(tree.Asked())) {
		removed, err := tree.Sweep(cmd.Context(), server, older)
		errs = append(errs, err)
		for _, path := range removed {
			if _, err := fmt.Fprintf(a.Out, "%s: removed %s\n", server, path); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}
