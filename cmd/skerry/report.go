package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/dstat"
	"skerry/internal/report"
)

func newReport(a *app) *cobra.Command {
	var out, csv string
	c := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write a run's report: one HTML page that works offline",
		Long: "Write the report of a run: results with their intervals, throughput and transferred data against the\n" +
			"distance, latency distributions, who talked to whom, every trial second by second, the evidence that\n" +
			"the emulation was true, and how to run it again. One file that needs nothing beside itself. DIR is a\n" +
			"run directory, by default the newest one, " + latestRun + ".\n\n" +
			"With --dstat what every node used, second by second, is written as dstat's CSV output instead.",
		Example: `  skerry report
  skerry report runs/20261121-183000-quickstart --out quickstart.html
  skerry report --dstat nodes/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := openRun(args)
			if err != nil {
				return err
			}
			if csv != "" {
				n, err := dstat.Export(d, csv)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%s: %d files\n", csv, n)
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
	c.Flags().StringVar(&csv, "dstat", "", "write a CSV file for each trial and node, in dstat's layout, into `FOLDER`")
	c.MarkFlagsMutuallyExclusive("out", "dstat")
	return c
}
