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
		Short: "Write the report of a run as one offline HTML page",
		Long: "Write the report of a run as one self-contained HTML page: results with their intervals, comparisons over every\n" +
			"parameter, latency distributions, traffic between nodes, the timeline of every trial with its events, evidence\n" +
			"for the accuracy of the emulation, and the command that reproduces the run. DIR is a run directory, by default\n" +
			"the newest one, " + latestRun + ".\n" +
			"\n" +
			"--png also renders the report with an installed Chromium.\n" +
			"\n" +
			"--dstat writes the usage of every node per second as dstat's CSV output instead.",
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
	c.Flags().StringVar(&out, "out", "", "write to `FILE` instead of DIR/"+webdata.FileName)
	c.Flags().StringVar(&csv, "dstat", "", "write a CSV file in dstat's layout for each trial and node into `FOLDER`")
	c.Flags().StringVar(&png, "png", "", "also render the report to the PNG `FILE`")
	c.MarkFlagsMutuallyExclusive("out", "dstat")
	c.MarkFlagsMutuallyExclusive("png", "dstat")
	return c
}

// writeReport writes the report of a run. It returns web.ErrNotBuilt if this binary has no front end.
func (a *app) writeReport(path string, d *record.Dir) (string, error) {
	page, err := a.reportPage()
	if err != nil {
		return "", fmt.Errorf("write report of %s: %w", d.Path, err)
	}
	return webdata.WriteFile(path, page, d)
}
