package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/bench/linkbench"
)

func newBenchLink(a *app) *cobra.Command {
	var o linkbench.Options
	var against string
	steal := unit.Fraction(0.3)
	c := &cobra.Command{
		Use:   "link",
		Short: "Measure the accuracy of emulated links",
		Long: "Measure the userspace link engine in its own namespaces. The benchmark needs root and an otherwise idle machine.\n" +
			"A full run takes nine minutes.\n" +
			"\n" +
			"  rtt        round trips of all pairs of azure8: idle, with busy cores, with TCP traffic, with stolen processors\n" +
			"  sparse     1, 20 and 1,000 round trips per second, by kernel and by application, above a plain veth pair\n" +
			"  bandwidth  throughput of links of 1 to 1,000 Mbit/s under overload\n" +
			"  stream     one TCP stream without shaping, compared with a plain veth pair\n" +
			"  grow       packets/s and TCP over two independent links, with one thread and with two\n" +
			"  cost       CPU time of the emulator, idle and per packet, alternating with that of --against\n" +
			"  long       one TCP stream at 100 ms and 1 Gbit/s\n" +
			"  change     time to change all links of azure8",
		Example: `  skerry bench link --only rtt --steal 30%
  skerry bench link --only sparse,grow --json
  skerry bench link --only cost --against /opt/skerry-0.1.0/skerry`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			o.Command, o.Thief = []string{exe, "agent", "link"}, []string{exe, "agent", "stress", "steal"}
			o.Steal = float64(steal)
			if against != "" {
				o.Against = []string{against, "agent", "link"}
			}
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := linkbench.Run(cmd.Context(), o)
			if errors.Is(err, linkbench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			return errors.Join(err, printBench(a, cmd, r)) // the parts measured before an error are printed as well
		},
	}
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(linkbench.Parts(), ", "))
	c.Flags().StringVar(&against, "against", "", "in part cost, alternate with the emulator of another skerry `PROGRAM`")
	c.Flags().TextVar(&steal, "steal", steal, "steal one processor at a time, chosen at random, for this `SHARE` of the time; 0 disables it")
	c.Flags().BoolVar(&o.Quick, "quick", false, "take fewer samples")
	return c
}
