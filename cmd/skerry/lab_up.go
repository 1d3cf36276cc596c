package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/lab"
	"skerry/internal/lab/service"
	"skerry/internal/run/multihost"
	"skerry/internal/topology"
)

// long is the number of nodes from which the creation of a lab shows progress.
const long = 128

func newLabUp(a *app) *cobra.Command {
	var o lab.Config
	var machines string
	var places []string
	var between, links string
	c := &cobra.Command{
		Use:   "up FILE|PRESET",
		Short: "Create a lab from a topology",
		Long: "Create a lab from a preset or from the topology in a YAML file (an experiment file works too). If the command fails\n" +
			"or is interrupted, it removes everything it created. With --machines the nodes run on several machines, and later\n" +
			"commands reach those machines in the same way.",
		Example: `  skerry lab up azure8
  skerry lab up azure8 --scale 5 --name far
  skerry lab up ring:16,rtt=40ms,bandwidth=100mbit
  skerry lab up my-cloud.yaml --engine userspace
  skerry lab up azure8 --machines machines.yaml --place Pune=rack-1
  skerry lab up azure8 --machines machines.yaml --links real`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return topology.Presets(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cloud, err := topology.Load(args[0], lab.CheckOverlay)
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if machines == "" && (len(places) > 0 || cmd.Flags().Changed("between") || links == multihost.Real) {
				return fmt.Errorf("%w: --place, --between and --links real require --machines", cli.ErrUsage)
			}
			if links != multihost.Emulated && links != multihost.Real {
				return fmt.Errorf("%w: --links must be %s or %s", cli.ErrUsage, multihost.Emulated, multihost.Real)
			}
			if between != multihost.Encrypted && between != multihost.Plain {
				return fmt.Errorf("%w: --between must be %s or %s", cli.ErrUsage, multihost.Encrypted, multihost.Plain)
			}
			if machines == "" {
				if err := a.prepare(cmd.Context()); err != nil {
					return err
				}
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			if o.Name == "" {
				o.Name = lab.SanitizeName(cloud.Name)
			}
			progress := a.Progress()
			o.Topology, o.StateDir, o.Log = cloud, a.stateDir, a.Log
			if o.Overlay, err = lab.NewOverlay(cmd.Context(), cloud.Overlay); err != nil {
				return err
			}
			if o.Balancer, err = service.FindBalancer(cmd.Context(), cloud.Service); err != nil {
				return err
			}
			if len(cloud.Nodes) >= long {
				o.Progress = func(stage string, done, total int) { progress.Livef("%s: %d of %d", stage, done, total) }
			}
			done := func() error { return nil }
			var l *lab.Lab
			if machines != "" {
				l, done, err = a.upElsewhere(cmd.Context(), o, machines, places, multihost.LabOptions{Between: between, Links: links})
			} else {
				l, err = lab.Up(cmd.Context(), o)
			}
			progress.Done()
			if err != nil {
				return err
			}
			for _, warning := range l.Warnings() {
				fmt.Fprintln(a.Err, "warning:", warning)
			}
			engine, _ := l.Engine()
			fmt.Fprintf(a.Out, "%s is up: %d nodes, %d links by %s\n", l.Name(), len(l.Hosts()), len(l.Links()), engine)
			return errors.Join(l.Close(), done())
		},
	}
	c.Flags().StringVar(&o.Name, "name", "", "name of the lab (default: name of the topology)")
	c.Flags().StringVar(&machines, "machines", "", "run the nodes on the machines in a machines `FILE`")
	c.Flags().StringArrayVar(&places, "place", nil,
		"with --machines, place nodes: `NODE=MACHINE`, SITE=MACHINE or *=MACHINE (repeatable; default: by CPU and memory)")
	c.Flags().StringVar(&between, "between", multihost.Encrypted,
		"with --machines, traffic between machines: encrypted, or plain between private addresses")
	c.Flags().StringVar(&links, "links", multihost.Emulated,
		"with --machines, links between machines: emulated, or real to leave the network unchanged")
	_ = c.RegisterFlagCompletionFunc("links", cobra.FixedCompletions([]string{multihost.Emulated, multihost.Real}, cobra.ShellCompDirectiveNoFileComp)) // fails only where there is no such flag
	c.Flags().StringVar(&o.Engine, "engine", "auto", "link engine: auto, netem or userspace")
	c.Flags().Float64Var(&o.Scale, "scale", 1, "factor of every latency")
	c.Flags().Uint64Var(&o.Seed, "seed", 0, "seed of the random choices of links")
	return c
}
