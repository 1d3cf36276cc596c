package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/bench/tunnelbench"
)

func newBenchWireguard(a *app) *cobra.Command {
	var o tunnelbench.Options
	c := &cobra.Command{
		Use:   "wireguard",
		Short: "Measure encrypted links",
		Long: "Measure links encrypted by WireGuard: how long the tunnels of a mesh take until all of them answer and what\n" +
			"memory they cost, and what one TCP stream carries through a tunnel and past it, with the CPU that it takes.",
		Example: "  skerry bench wireguard\n  skerry bench wireguard --only stream --rounds 1 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Tunnels < 1 || o.Rounds < 1 || o.Seconds < 1 {
				return fmt.Errorf("%w: --tunnels, --rounds and --seconds are 1 or more", errUsage)
			}
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := tunnelbench.Run(cmd.Context(), o)
			if errors.Is(err, tunnelbench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Tunnels, "tunnels", 64, "of the mesh")
	f.DurationVar(&o.Latency, "latency", 10*time.Millisecond, "of the link that the stream goes over, one way")
	f.IntVar(&o.Seconds, "seconds", 10, "how long each stream is measured")
	f.IntVar(&o.Rounds, "rounds", 3, "how often each figure is taken; medians are told")
	f.StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(tunnelbench.Parts(), ", "))
	return c
}
