package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/advice"
	"skerry/internal/bench/linkbench"
)

func newBenchLink(a *app) *cobra.Command {
	var o linkbench.Options
	c := &cobra.Command{
		Use:   "link",
		Short: "Measure the accuracy of emulated links",
		Long: "Measure the userspace link engine in namespaces of its own: round trips over all pairs of azure8\n" +
			"(idle, beside busy cores, beside TCP), bandwidth, TCP throughput, and what changing all links takes.\n" +
			"Needs root. A whole run takes four minutes on a machine that does nothing else.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			o.Command = []string{exe, "agent", "link"}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := linkbench.Run(cmd.Context(), o)
			if errors.Is(err, linkbench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: rtt, bandwidth, stream, long, change")
	c.Flags().BoolVar(&o.Quick, "quick", false, "take fewer samples")
	return c
}
