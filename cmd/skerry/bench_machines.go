package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/bench/machinebench"
)

func newBenchMachines(a *app) *cobra.Command {
	var o machinebench.Options
	c := &cobra.Command{
		Use:   "machines",
		Short: "Measure labs on several machines",
		Long: "Measure labs on several machines, which are pretended: network namespaces of this one that a bridge joins, so\n" +
			"that all share its processors. The parts: round trips of links between two machines against the same links on\n" +
			"one (rtt), one TCP stream over a link of 10 ms (stream), azure8 on 8 machines up and down (lab), a ring of 256\n" +
			"nodes on 32 machines (ring), one of 800 nodes on 8 (dense), and what skerry run takes of a core and of the\n" +
			"connections to the machines while Redis is measured on 8 of them (traffic).",
		Example: "  skerry bench machines --only lab,ring\n  skerry bench machines --only rtt --rounds 1 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Seconds < 1 || o.Rounds < 1 || o.Echoes < 1 {
				return fmt.Errorf("%w: --seconds, --rounds and --echoes are 1 or more", errUsage)
			}
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := machinebench.Run(cmd.Context(), o)
			if errors.Is(err, machinebench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Seconds, "seconds", 10, "how long each stream is measured, and the trial of traffic")
	f.IntVar(&o.Rounds, "rounds", 3, "how often each figure is taken; medians are told")
	f.IntVar(&o.Echoes, "echoes", 100, "round trips on each link")
	f.StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(machinebench.Parts(), ", "))
	return c
}
