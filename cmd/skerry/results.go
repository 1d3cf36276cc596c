package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"skerry/internal/base/atomicfile"
	"skerry/internal/record"
	"skerry/internal/report"
	"skerry/internal/report/compare"
	"skerry/internal/report/webdata"
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

func newReport(a *app) *cobra.Command {
	var out, csv string
	c := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write the report of a run as one offline HTML page",
		Long: "Write the report of a run as one self-contained HTML page: results with their intervals, comparisons over every\n" +
			"parameter, latency distributions, traffic between nodes, the timeline of every trial with its events, evidence\n" +
			"for the accuracy of the emulation, and the command that reproduces the run. DIR is a run directory, by default\n" +
			"the newest one, " + latestRun + ".\n" +
			"\n" +
			"--dstat writes the usage of every node per second as dstat's CSV output instead.",
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
			_, err = fmt.Fprintln(a.Out, path)
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE` instead of DIR/"+webdata.FileName)
	c.Flags().StringVar(&csv, "dstat", "", "write a CSV file in dstat's layout for each trial and node into `FOLDER`")
	c.MarkFlagsMutuallyExclusive("out", "dstat")
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
				if err := a.writeComparison(page, r); err != nil {
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

// writeComparison writes a comparison as a page to a file. It returns web.ErrNotBuilt if this binary has no front end.
func (a *app) writeComparison(path string, r compare.Report) error {
	page, err := a.reportPage()
	if err == nil {
		err = atomicfile.Write(path, func(w io.Writer) error { return webdata.WriteComparison(w, page, r) })
	}
	if err != nil {
		return fmt.Errorf("write comparison to %s: %w", path, err)
	}
	return nil
}
