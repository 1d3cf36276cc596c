package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/record"
	"skerry/internal/report"
)

// latestRun is what commands that read a run take when none is named.
const latestRun = "runs/latest"

func newShow(a *app) *cobra.Command {
	var trials, asJSON bool
	c := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Print the results of a run",
		Long: "Print a table of a run's results, one row for each cell of its matrix with all repetitions together,\n" +
			"what was found, and what is to be known about them. DIR is a run directory, by default the newest\n" +
			"one, " + latestRun + ". A run that is under way or was interrupted is shown as far as it is.\n" +
			"The last column draws the goodput over a trial's time, from 0 to its highest; a dot is a time in which\n" +
			"nothing ended ok.\n\n" +
			"Where the terminal is narrow, columns are left out; --json has everything.",
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
	c.Flags().BoolVar(&trials, "trials", false, "a row for every trial in place of every cell")
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
