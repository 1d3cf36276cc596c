package main

import (
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
// scheduler or a garbage collector with the rest.
func newAgent(a *app) *cobra.Command {
	c := &cobra.Command{Use: "agent", Hidden: true, Short: "Helper processes that skerry starts"}
	c.AddCommand(newAgentLink(a), newAgentLoad(a), newAgentHold(a), newAgentWireguard(a), newAgentStress(a),
		newAgentTask(a), newAgentMachine(a))
	return c
}

// newAgentHold returns the process that holds the user namespace of a rootless lab.
func newAgentHold(_ *app) *cobra.Command {
	return &cobra.Command{
		Use:   "hold",
		Short: "Hold the namespaces of a rootless lab",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			<-cmd.Context().Done()
			return nil
		},
	}
}

// newAgentLink returns the process of the userspace link engine. Its first line of input is its configuration.
func newAgentLink(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "link",
		Short: "Forward the packets of emulated links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return userspace.Main(cmd.Context(), a.In, a.Out, a.Log)
		},
	}
}

// newAgentWireguard returns the process of encrypted links. Its first line of input is its configuration.
func newAgentWireguard(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "wireguard",
		Short: "Forward the packets of encrypted links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tunnel.Main(cmd.Context(), a.In, a.Out, a.Log)
		},
	}
}

// newAgentLoad returns the process of the load driver. Its first line of input is its configuration.
func newAgentLoad(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "load",
		Short: "Drive a database with a workload",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return load.ServeAgent(cmd.Context(), a.In, a.Out, openDatabase)
		},
	}
}

// newAgentStress returns the programs that consume the resources of a node. Each ends when its standard input closes.
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
