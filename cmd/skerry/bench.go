package main

import (
	"io"

	"github.com/spf13/cobra"
)

// newBench groups the benchmarks behind the figures in the documentation.
func newBench(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Benchmark Skerry itself",
		Long: "Benchmark Skerry itself: the accuracy of emulated links, the time to create and remove labs, and the cost of the\n" +
			"load driver. The figures in the documentation come from these benchmarks.",
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
