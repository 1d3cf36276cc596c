package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"skerry/internal/report/compare"
)

func newCompare(a *app) *cobra.Command {
	var all, asJSON bool
	var page string
	var seed uint64
	c := &cobra.Command{
		Use:   "compare RUN[:CELL] [RUN[:CELL]]",
		Short: "Tell whether two runs, or two cells of one, differ by more than noise",
		Long: "Compare two cells. Every metric has its mean, standard deviation, variance and 95 % confidence interval over\n" +
			"independent repetitions, Hedges' g with the small-sample correction and without, a permutation test, and a\n" +
			"sentence. The data nodes' CPU has its distribution over seconds.\n\n" +
			"CELL is the number of a cell, or what tells it from others: scale=1,workload=a. Of two runs without CELL the\n" +
			"cells with the same parameters are compared; one run alone must have two cells. Figures are of the valid\n" +
			"repetitions. A cell without valid repetitions has the figures of its suspect ones, and says so.",
		Example: `  skerry compare runs/latest:1 runs/latest:2
  skerry compare runs/20261121-183000-aws runs/20261121-213000-openstack --html comparison.html
  skerry compare runs/latest:scale=0.2 runs/latest:scale=1 --all`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := compare.Runs(args, seed)
			if err != nil {
				return err
			}
			if page != "" {
				if err := writeTo(page, r.HTML); err != nil {
					return err
				}
			}
			if asJSON {
				return a.PrintJSON(r)
			}
			return r.Text(a.Out, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every metric, not the leading ones alone")
	c.Flags().BoolVar(&asJSON, "json", false, "print the comparison as JSON, every value and curve in it")
	c.Flags().StringVar(&page, "html", "", "also write a page with the CPU's curve and distribution to `FILE`")
	c.Flags().Uint64Var(&seed, "seed", 1, "of the permutation tests")
	return c
}

// writeTo makes a file of what write writes.
func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
