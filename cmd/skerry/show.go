package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/record"
	"skerry/internal/report"
)

// latestRun is the default run of commands that read one.
const latestRun = "runs/latest"

func newShow(a *app) *cobra.Command {
	var trials, asJSON bool
	c := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Print the results of a run",
		Long: "Print a table of the results of a run: one row for each cell of its matrix over all repetitions, then findings and\n" +
			"warnings. DIR is a run directory, by default the newest one, " + latestRun + ". For a running or interrupted run the\n" +
			"table has the trials so far. The last column is a sparkline of the goodput over a trial, from 0 to its maximum. A\n" +
			"dot is a period without successful operations.\n" +
			"\n" +
			"On a narrow terminal columns are omitted; --json has all of them.",
		Example: `  skerry show
  skerry show runs/20261121-183000-quickstart --trials
  skerry show --json | jq '.trials[] | [.parameters.scale, .goodput_ops_s]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := openRun(args)
			if err != nil {
				return err
			}
			if asJSON {
				return report.JSON(a.Out, d)
			}
			return report.Text(a.Out, d, report.TextOptions{Width: a.Width(), Trials: trials})
		},
	}
	c.Flags().BoolVar(&trials, "trials", false, "print a row for every trial instead of every cell")
	c.Flags().BoolVar(&asJSON, "json", false, "print summary.json")
	c.MarkFlagsMutuallyExclusive("trials", "json")
	return c
}

func openRun(args []string) (*record.Dir, error) {
	dir := latestRun
	if len(args) > 0 {
		dir = args[0]
	}
	return record.Open(dir)
}
