package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/dstat"
	"skerry/internal/report/picture"
	"skerry/internal/report/webdata"
	"skerry/web"
)

func newReport(a *app) *cobra.Command {
	var out, csv, png string
	var plain bool
	c := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write a run's report: one HTML page that works offline",
		Long: "Write the report of a run: results with their intervals, comparisons over every parameter, latency\n" +
			"distributions, who talked to whom, every trial second by second with its events, the evidence that\n" +
			"the emulation was true, and how to run it again. One file that needs nothing beside itself. DIR is a\n" +
			"run directory, by default the newest one, " + latestRun + ".\n\n" +
			"--plain writes a page without scripts: for mail programs, for archives, and what a skerry writes that\n" +
			"was built without its front end. --png draws the report with Chromium, where there is one.\n\n" +
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
				n, err := dstat.Export(d, csv)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.out, "%s: %d files\n", csv, n)
				return err
			}
			path, err := a.writeReport(out, d, plain)
			if err != nil {
				return err
			}
			if png != "" {
				if err := picture.PNG(cmd.Context(), path, png); err != nil {
					return err
				}
				path = png
			}
			_, err = fmt.Fprintln(a.out, path)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` in place of DIR/"+report.FileName)
	c.Flags().StringVar(&csv, "dstat", "", "write a CSV file for each trial and node, in dstat's layout, into `FOLDER`")
	c.Flags().BoolVar(&plain, "plain", false, "write the page without scripts")
	c.Flags().StringVar(&png, "png", "", "also draw the report into the picture `FILE`")
	c.MarkFlagsMutuallyExclusive("out", "dstat")
	c.MarkFlagsMutuallyExclusive("plain", "dstat")
	c.MarkFlagsMutuallyExclusive("png", "dstat")
	return c
}

// writeReport writes the report of a run, plain where this binary has no front end.
func (a *app) writeReport(path string, d *record.Dir, plain bool) (string, error) {
	if plain {
		return report.WriteHTML(path, d)
	}
	page, err := web.ReportPage()
	if errors.Is(err, web.ErrNotBuilt) {
		fmt.Fprintf(a.err, "the report is a plain page, since %v (%s)\n", err, advice.Of(err))
		return report.WriteHTML(path, d)
	}
	if err != nil {
		return "", err
	}
	return report.WriteFile(path, d, func(w io.Writer) error { return webdata.Write(w, page, d) })
}
