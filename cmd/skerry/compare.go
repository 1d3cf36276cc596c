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
		Short: "Test whether two runs, or two cells of one run, differ",
		Long: "Compare two cells. For every metric the comparison has the mean, standard deviation, variance and 95 % confidence\n" +
			"interval over independent repetitions, Hedges' g with and without the small-sample correction, a permutation\n" +
			"test, and a sentence. For the CPU of the data nodes it has the distribution over seconds.\n" +
			"\n" +
			"CELL is the number of a cell, or its distinguishing parameters: scale=1,workload=a. For two runs without CELL,\n" +
			"cells with equal parameters are compared. A single run must have two cells. Figures are from valid repetitions.\n" +
			"For a cell without valid repetitions they are from the suspect ones, with a note.",
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
	c.Flags().BoolVar(&all, "all", false, "print every metric, not only the leading ones")
	c.Flags().BoolVar(&asJSON, "json", false, "print the comparison as JSON, with all values and curves")
	c.Flags().StringVar(&page, "html", "", "also write a page with the CPU curve and distribution to `FILE`")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the permutation tests")
	return c
}

// writeTo creates the file at path with the output of write.
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
