package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/bench/labbench"
	"skerry/internal/bench/linkbench"
	"skerry/internal/bench/loadbench"
)

// newBench groups the benchmarks behind the figures in the documentation.
func newBench(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Benchmark Skerry itself",
		Long: "Benchmark Skerry itself: the accuracy of emulated links, the time to create and remove labs, and the cost of the\n" +
			"load driver. Figures in the documentation come from these benchmarks.",
	}
	c.PersistentFlags().Bool("json", false, "print the result as JSON")
	c.AddCommand(newBenchLink(a), newBenchLab(a), newBenchLoad(a))
	return c
}

// printBench prints a benchmark's result as text, or as JSON where --json asks for it.
func printBench(a *app, cmd *cobra.Command, result interface{ Text(io.Writer) error }) error {
	asJSON, err := cmd.Flags().GetBool("json")
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(result)
	}
	return result.Text(a.Out)
}

func newBenchLink(a *app) *cobra.Command {
	var o linkbench.Options
	steal := unit.Fraction(0.3)
	c := &cobra.Command{
		Use:   "link",
		Short: "Measure the accuracy of emulated links",
		Long: "Measure the userspace link engine in its own namespaces. The benchmark needs root and an otherwise idle machine.\n" +
			"\n" +
			"  rtt        round trips of all pairs of azure8: idle, with busy cores, with TCP traffic, with stolen processors\n" +
			"  bandwidth  throughput of links of 1 to 1,000 Mbit/s under overload",
		Example: `  skerry bench link --only rtt --steal 30%
  skerry bench link --only bandwidth --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			o.Command, o.Thief = []string{exe, "agent", "link"}, []string{exe, "agent", "stress", "steal"}
			o.Steal = float64(steal)
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := linkbench.Run(cmd.Context(), o)
			if errors.Is(err, linkbench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			return errors.Join(err, printBench(a, cmd, r)) // the parts measured before an error are printed as well
		},
	}
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(linkbench.Parts(), ", "))
	c.Flags().TextVar(&steal, "steal", steal, "steal one processor at a time, chosen at random, for this `SHARE` of the time; 0 disables it")
	c.Flags().BoolVar(&o.Quick, "quick", false, "take fewer samples")
	return c
}

func newBenchLab(a *app) *cobra.Command {
	var o labbench.Options
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure how fast labs start and stop",
		Long: "Measure how long a lab takes to start and to stop, and the memory of a node. The topologies are azure8 (eight\n" +
			"datacentres) and rings of 256 and 1000 nodes. Times are medians.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := labbench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	return c
}

func newBenchLoad(a *app) *cobra.Command {
	var o loadbench.Options
	c := &cobra.Command{
		Use:   "load",
		Short: "Measure the cost of the load driver",
		Long: "Measure the load driver in operations per CPU-second against a null database that answers at once, with one and\n" +
			"with 16 threads.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := loadbench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().BoolVar(&o.Quick, "quick", false, "run fewer operations")
	return c
}
