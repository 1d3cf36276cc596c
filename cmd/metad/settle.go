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
		Short: "Remove leftovers of servers, or end an orphaned transaction",
		Long: "Without a transaction, remove the leftovers of failed clients and servers from all servers that share the tree: copies\n" +
			"of directories that were being moved, and empty subtrees without a reference. Servers also do this after their start\n" +
			"and every hour, for subtrees that were unreferenced for half an hour. Objects that an unreachable server may need stay.\n" +
			"\n" +
			"With a transaction, end one that a server has prepared and whose coordinator is lost. `metad status` lists the\n" +
			"transactions of a server. Servers end them by themselves as soon as the coordinator answers; use this command only if\n" +
			"it never will. End the transaction in the same way on all servers that have it: with `commit` if one of them has\n" +
			"already committed it, else with `abort`.",
		Example: "  metad settle 10.0.1.1:8080\n" +
			"  metad status 10.0.1.1:8080\n  metad settle 10.0.1.1:8080 18912f3c2b6a7d10-5f1c2a3b abort",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 3 {
				return fmt.Errorf("%w: ADDR or ADDR TRANSACTION commit|abort required", cli.ErrUsage)
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
			with, err := reach.options(a, args[0], bearer.Write)
			if err != nil {
				return err
			}
			m := client.NewOwn(args[0], with...)
			defer m.Close()
			if r := m.DoOne(cmd.Context(), metadata.Step{Verb: verb, Txn: args[1]}.Command("/", "")); r.Err != nil {
				return r.Err
			}
			_, err = fmt.Fprintf(a.Out, "%s is settled\n", args[1])
			return err
		},
	}
	reach.add(c)
	c.Flags().DurationVar(&older, "older", older, "remove empty subtrees older than this, so that new ones stay")
	return c
}

// sweepServers removes the leftovers on all servers.
func sweepServers(a *cli.App, cmd *cobra.Command, reach treeReach, addr string, older time.Duration) error {
	with, err := reach.options(a, addr, bearer.Write)
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
