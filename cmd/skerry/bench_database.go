package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/bench/dbbench"
	"skerry/internal/database"
	"skerry/internal/database/all"
)

func newBenchDatabase(a *app) *cobra.Command {
	var o dbbench.Options
	var settings []string
	c := &cobra.Command{
		Use:   "database NAME...",
		Short: "Measure databases as the laboratory runs them",
		Long: "Measure databases that are installed, on labs at no distance: how long a cluster takes until it serves, what\n" +
			"memory a node takes, what its client costs (operations per second of CPU) beside a loop written by hand over the\n" +
			"same driver, and how many rows are lost when members join and leave at random while rows are written.",
		Example: "  skerry bench database redis\n  skerry bench database redis etcd --only churn --changes 5\n" +
			"  skerry bench database mongodb --only ready --nodes 3 --option topology=sharded",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Databases, o.Names, o.Settings = all.Databases(), names, make(database.Options)
			for _, s := range settings {
				name, value, ok := strings.Cut(s, "=")
				if !ok {
					return advice.With(fmt.Errorf("%w: --option %q is not NAME=VALUE", errUsage, s), "see %s --help", cmd.CommandPath())
				}
				o.Settings[name] = value
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := dbbench.Run(cmd.Context(), o)
			if errors.Is(err, dbbench.ErrPart) || errors.Is(err, database.ErrUnknown) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help, and skerry install --list", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().StringArrayVar(&settings, "option", nil, "set an option of the clusters: NAME=VALUE (repeatable)")
	c.Flags().IntVar(&o.Nodes, "nodes", 8, "of the cluster whose start is timed")
	c.Flags().IntVar(&o.Changes, "changes", 20, "joins and leaves")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "decides which members join and leave")
	c.Flags().StringVar(&o.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: ready, cost, churn")
	return c
}
