package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/bench/linkbench"
)

func newBenchLink(a *app) *cobra.Command {
	var o linkbench.Options
	steal := unit.Fraction(0.3)
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
			o.Command, o.Thief = []string{exe, "agent", "link"}, []string{exe, "agent", "stress", "steal"}
			o.Steal = float64(steal)
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
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: rtt, sparse, bandwidth, stream, long, change")
	c.Flags().TextVar(&steal, "steal", steal, "take one processor away, now this and now that one, for such a `SHARE` of the time; 0: not at all")
	c.Flags().BoolVar(&o.Quick, "quick", false, "take fewer samples")
	return c
}
