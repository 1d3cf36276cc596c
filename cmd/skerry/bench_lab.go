package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/bench/labbench"
)

func newBenchLab(a *app) *cobra.Command {
	var o labbench.Options
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure how fast labs come and go",
		Long: "Measure how long a lab takes to come up and to go down, and what memory a node costs: the eight\n" +
			"datacentres of azure8, rings of 256 and of 1000 nodes. Times are medians.",
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
	c.Flags().IntVar(&o.Runs, "runs", 3, "of each topology")
	c.Flags().StringVar(&o.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "topologies to measure: azure8, ring:256, ring:1000")
	return c
}
