package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/event/stress"
	"skerry/internal/link/tunnel"
	"skerry/internal/link/userspace"
	"skerry/internal/load"
)

// newAgent returns the hidden commands of helper processes. They are separate processes because they must not share a
// scheduler or a garbage collector with the rest. The first line of input of link, wireguard and load is the configuration.
func newAgent(a *app) *cobra.Command {
	c := &cobra.Command{Use: "agent", Hidden: true, Short: "Helper processes that skerry starts"}
	for _, p := range []struct {
		use, short string
		run        func(ctx context.Context) error
	}{
		{"hold", "Hold the namespaces of a rootless lab", func(ctx context.Context) error { <-ctx.Done(); return nil }},
		{"link", "Forward the packets of emulated links", func(ctx context.Context) error { return userspace.Main(ctx, a.In, a.Out, a.Log) }},
		{"wireguard", "Forward the packets of encrypted links", func(ctx context.Context) error { return tunnel.Main(ctx, a.In, a.Out, a.Log) }},
		{"load", "Drive a database with a workload", func(ctx context.Context) error { return load.ServeAgent(ctx, a.In, a.Out, openDatabase) }},
	} {
		c.AddCommand(&cobra.Command{
			Use: p.use, Short: p.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
		})
	}
	c.AddCommand(newAgentStress(a), newAgentTask(a), newAgentMachine(a))
	return c
}

// newAgentStress returns the programs that consume the resources of a node. Each ends when its standard input closes.
func newAgentStress(a *app) *cobra.Command {
	c := &cobra.Command{Use: "stress", Short: "Consume the resources of a node"}
	add := func(use, short string, args int, load func(args []string) (stress.Stressor, error)) {
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
	add("cpu CORES", "Keep cores busy", 1, func(args []string) (stress.Stressor, error) {
		cores, err := strconv.ParseFloat(args[0], 64)
		return stress.CPU(cores), err
	})
	add("steal SHARE", "Steal processors at random", 1, func(args []string) (stress.Stressor, error) {
		share, err := strconv.ParseFloat(args[0], 64)
		return stress.Steal(share, uint64(time.Now().UnixNano())), err
	})
	add("memory BYTES", "Hold memory", 1, func(args []string) (stress.Stressor, error) {
		bytes, err := strconv.ParseInt(args[0], 10, 64)
		return stress.Memory(bytes), err
	})
	add("sink tcp|udp ADDRESS", "Receive and discard packets", 2, func(args []string) (stress.Stressor, error) {
		return stress.Sink(args[0], args[1]), nil
	})
	add("send tcp|udp ADDRESS:PORT BPS", "Send packets at a rate", 3, func(args []string) (stress.Stressor, error) {
		bps, err := strconv.ParseInt(args[2], 10, 64)
		return stress.Send(args[0], args[1], bps), err
	})
	return c
}
