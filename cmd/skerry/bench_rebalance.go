package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/bench/rebalbench"
	"skerry/internal/database/redis"
)

func newBenchRebalance(a *app) *cobra.Command {
	o := rebalbench.Options{Slots: [2]int{10, 40}}
	c := &cobra.Command{
		Use:   "rebalance",
		Short: "Measure how fast Redis' slots move",
		Long: "Measure how long a node of a Redis Cluster over the eight datacentres of azure8 takes to leave and to\n" +
			"join, and what clients notice meanwhile, beside redis-cli in the same run. redis-cli moves some slots, from\n" +
			"which the time for all of a node's is told, or with --cli-all all of them, which takes up to an hour.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Database = redis.New()
			if o.Installation, err = o.Database.Find(""); err != nil {
				return err
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := rebalbench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().Int64Var(&o.Records, "records", 10_000, "in the table")
	c.Flags().Float64SliceVar(&o.Scales, "scales", []float64{0.2, 1}, "of the latencies: 0.2 is the paper's X, 1 its 5X")
	c.Flags().BoolVar(&o.AllSlots, "cli-all", false, "have redis-cli move all of a node's slots")
	c.Flags().IntVar(&o.Cycles, "cycles", 3, "a leave and a join of one node each, of another node each time")
	c.Flags().StringVar(&o.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	return c
}
