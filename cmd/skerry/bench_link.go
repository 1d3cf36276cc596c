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
		Long: "Measure the userspace link engine in namespaces of its own. Needs root, and a machine that does nothing else:\n" +
			"a whole run takes nine minutes.\n\n" +
			"  rtt        round trips over all pairs of azure8: idle, beside busy cores, beside TCP, with stolen processors\n" +
			"  sparse     1, 20 and 1,000 round trips a second, by kernel and by application, above a plain veth pair\n" +
			"  bandwidth  what links of 1 to 1,000 Mbit/s carry while more is offered\n" +
			"  stream     one TCP stream without shaping, beside a plain veth pair\n" +
			"  grow       packets/s and TCP over two links that share nothing, with one thread and with two\n" +
			"  cost       processor time of the emulator, idle and a packet, in turns with that of --against\n" +
			"  long       one TCP stream at 100 ms and 1 Gbit/s\n" +
			"  change     what changing all links of azure8 takes",
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
			return errors.Join(err, printBench(a, cmd, r)) // what was measured before an error is told, too
		},
	}
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(linkbench.Parts(), ", "))
	c.Flags().StringVar(&against, "against", "", "in part cost, take turns with the emulator of another skerry `PROGRAM`")
	c.Flags().TextVar(&steal, "steal", steal, "take one processor away, now this and now that one, for such a `SHARE` of the time; 0: not at all")
	c.Flags().BoolVar(&o.Quick, "quick", false, "take fewer samples")
	return c
}
