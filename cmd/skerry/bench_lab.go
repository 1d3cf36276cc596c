package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/bench/labbench"
)

func newBenchLab(a *app) *cobra.Command {
	var o labbench.Options
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure how fast labs start and stop",
		Long: "Measure how long a lab takes to start and to stop, and the memory of a node. The topologies are azure8 (eight\n" +
			"datacentres) and rings of 256 and 1000 nodes. Times are medians.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := labbench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().IntVar(&o.Runs, "runs", 3, "repetitions for each topology")
	c.Flags().StringVar(&o.Engine, "engine", "auto", "link engine: auto, netem or userspace")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "topologies to measure: azure8, ring:256, ring:1000")
	return c
}
