package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/event/stress"
)

// newAgentStress is the family of programs that use up what a node has. Each ends with its
// standard input.
func newAgentStress(a *app) *cobra.Command {
	c := &cobra.Command{Use: "stress", Short: "Consume the resources of a node"}
	add := func(use, short string, args int, load func(args []string) (stress.Load, error)) {
		c.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: cobra.ExactArgs(args),
			RunE: func(cmd *cobra.Command, args []string) error {
				l, err := load(args)
				if err != nil {
					return fmt.Errorf("%w: %w", cli.ErrUsage, err)
				}
				return stress.Run(cmd.Context(), a.In, a.Out, l)
			},
		})
	}
	add("cpu CORES", "Keep cores busy", 1, func(args []string) (stress.Load, error) {
		cores, err := strconv.ParseFloat(args[0], 64)
		return stress.CPU(cores), err
	})
	add("steal SHARE", "Steal processors at random", 1, func(args []string) (stress.Load, error) {
		share, err := strconv.ParseFloat(args[0], 64)
		return stress.Steal(share, uint64(time.Now().UnixNano())), err
	})
	add("memory BYTES", "Hold memory", 1, func(args []string) (stress.Load, error) {
		bytes, err := strconv.ParseInt(args[0], 10, 64)
		return stress.Memory(bytes), err
	})
	add("sink tcp|udp ADDRESS", "Receive and discard packets", 2, func(args []string) (stress.Load, error) {
		return stress.Sink(args[0], args[1]), nil
	})
	add("send tcp|udp ADDRESS:PORT BPS", "Send packets at a rate", 3, func(args []string) (stress.Load, error) {
		bps, err := strconv.ParseInt(args[2], 10, 64)
		return stress.Send(args[0], args[1], bps), err
	})
	return c
}
