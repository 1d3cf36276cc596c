package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/report"
)

func newReport(a *app) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write a run's report: one HTML page that works offline",
		Long: "Write the report of a run: results with their intervals, throughput and transferred data against the\n" +
			"distance, latency distributions, who talked to whom, every trial second by second, the evidence that\n" +
			"the emulation was true, and how to run it again. One file that needs nothing beside itself. DIR is a\n" +
			"run directory, by default the newest one, " + latestRun + ".",
		Example: `  skerry report
  skerry report runs/20261121-183000-quickstart --out quickstart.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := openRun(args)
			if err != nil {
				return err
			}
			path, err := report.WriteHTML(out, d)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.out, path)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` in place of DIR/"+report.FileName)
	return c
}
