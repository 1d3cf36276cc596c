package main

import (
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/bench/uibench"
)

func newBenchDashboard(a *app) *cobra.Command {
	var o uibench.Options
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Measure what the dashboard costs a run",
		Long: "Measure what a run pays for telling of itself, alone and with browsers that look, and how soon they hear of an\n" +
			"event: a feed of made-up seconds, the server, and clients that read as browsers do but draw nothing.",
		Example: `  skerry bench dashboard
  skerry bench dashboard --nodes 1000 --browsers 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := uibench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 8, "of the cloud, each at a site of its own")
	c.Flags().IntVar(&o.Browsers, "browsers", 2, "that look")
	c.Flags().DurationVar(&o.Time, "time", 20*time.Second, "how long each of the two parts takes")
	c.Flags().BoolVar(&o.Scrape, "scrape", true, "let metrics be read once a second")
	return c
}
