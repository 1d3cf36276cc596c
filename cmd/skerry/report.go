package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/screenshot"
	"skerry/internal/report/webdata"
)

func newReport(a *app) *cobra.Command {
	var out, csv, png string
	c := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write a run's report: one HTML page that works offline",
		Long: "Write the report of a run: results with their intervals, comparisons over every parameter, latency\n" +
			"distributions, who talked to whom, every trial second by second with its events, the evidence that\n" +
			"the emulation was true, and how to run it again. One file that needs nothing beside itself. DIR is a\n" +
			"run directory, by default the newest one, " + latestRun + ".\n\n" +
			"--png draws the report with Chromium, where there is one.\n\n" +
			"With --dstat what every node used, second by second, is written as dstat's CSV output instead.",
		Example: `  skerry report
  skerry report runs/20261121-183000-quickstart --out quickstart.html
  skerry report --png report.png
  skerry report --dstat nodes/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openRun(args)
			if err != nil {
				return err
			}
			if csv != "" {
				n, err := report.ExportDstat(d, csv)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.Out, "%s: %d files\n", csv, n)
				return err
			}
			path, err := a.writeReport(out, d)
			if err != nil {
				return err
			}
			if png != "" {
				if err := screenshot.PNG(cmd.Context(), path, png); err != nil {
					return err
				}
				path = png
			}
			_, err = fmt.Fprintln(a.Out, path)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` in place of DIR/"+webdata.FileName)
	c.Flags().StringVar(&csv, "dstat", "", "write a CSV file for each trial and node, in dstat's layout, into `FOLDER`")
	c.Flags().StringVar(&png, "png", "", "also draw the report into the picture `FILE`")
	c.MarkFlagsMutuallyExclusive("out", "dstat")
	c.MarkFlagsMutuallyExclusive("png", "dstat")
	return c
}

// writeReport writes the report of a run; web.ErrNotBuilt where this binary has no front end.
func (a *app) writeReport(path string, d *record.Dir) (string, error) {
	page, err := a.reportPage()
	if err != nil {
		return "", fmt.Errorf("writing the report of %s: %w", d.Path, err)
	}
	return webdata.WriteFile(path, page, d)
}
