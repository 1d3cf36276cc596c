package main

import (
	"context"
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

// labUp holds the flags of skerry lab up.
type labUp struct {
	config   lab.Config
	machines string
	places   []string
	options  multihost.LabOptions
}

func newLabUp(a *app) *cobra.Command {
	var up labUp
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
			if err := up.check(cmd.Flags().Changed("between")); err != nil {
				return err
			}
			return a.labUp(cmd.Context(), up, args[0])
		},
	}
	c.Flags().StringVar(&up.config.Name, "name", "", "name of the lab (default: name of the topology)")
	c.Flags().StringVar(&up.machines, "machines", "", "run the nodes on the machines in a machines `FILE`")
	c.Flags().StringArrayVar(&up.places, "place", nil,
		"with --machines, place nodes: `NODE=MACHINE`, SITE=MACHINE or *=MACHINE (repeatable; default: by CPU and memory)")
	c.Flags().StringVar(&up.options.Between, "between", multihost.Encrypted,
		"with --machines, traffic between machines: encrypted, or plain between private addresses")
	c.Flags().StringVar(&up.options.Links, "links", multihost.Emulated,
		"with --machines, links between machines: emulated, or real to leave the network unchanged")
	links := []string{multihost.Emulated, multihost.Real}
	// Registration fails only for an unknown flag.
	_ = c.RegisterFlagCompletionFunc("links", cobra.FixedCompletions(links, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVar(&up.config.Engine, "engine", "auto", "link engine: auto, netem or userspace")
	c.Flags().Float64Var(&up.config.Scale, "scale", 1, "factor of every latency")
	c.Flags().Uint64Var(&up.config.Seed, "seed", 0, "seed of the random choices of links")
	return c
}

// check rejects invalid values and combinations of flags. between is true if --between is given.
func (up *labUp) check(between bool) error {
	switch o := up.options; {
	case up.machines == "" && (len(up.places) > 0 || between || o.Links == multihost.Real):
		return fmt.Errorf("%w: --place, --between and --links real require --machines", cli.ErrUsage)
	case o.Links != multihost.Emulated && o.Links != multihost.Real:
		return fmt.Errorf("%w: --links must be %s or %s", cli.ErrUsage, multihost.Emulated, multihost.Real)
	case o.Between != multihost.Encrypted && o.Between != multihost.Plain:
		return fmt.Errorf("%w: --between must be %s or %s", cli.ErrUsage, multihost.Encrypted, multihost.Plain)
	}
	return nil
}

// labUp creates a lab from a topology file or preset.
func (a *app) labUp(ctx context.Context, up labUp, file string) error {
	cloud, err := topology.Load(file, lab.CheckOverlay)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if up.machines == "" {
		if err := a.prepare(ctx); err != nil {
			return err
		}
	}
	c := up.config
	if c.Exe, err = executable(); err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = lab.SanitizeName(cloud.Name)
	}
	progress := a.Progress()
	c.Topology, c.StateDir, c.Log = cloud, a.stateDir, a.Log
	if c.Overlay, err = lab.NewOverlay(ctx, cloud.Overlay); err != nil {
		return err
	}
	if c.Balancer, err = service.FindBalancer(ctx, cloud.Service); err != nil {
		return err
	}
	if len(cloud.Nodes) >= long {
		c.Progress = func(stage string, done, total int) { progress.Livef("%s: %d of %d", stage, done, total) }
	}
	done := func() error { return nil }
	var l *lab.Lab
	if up.machines != "" {
		l, done, err = a.upElsewhere(ctx, c, up)
	} else {
		l, err = lab.Up(ctx, c)
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
}
