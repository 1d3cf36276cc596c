package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/hydra/deploy"
	"skerry/internal/lab"
	"skerry/internal/topology"
)

func newHydraUp(a *app) *cobra.Command {
	var o deploy.Options
	var config lab.Config
	var asJSON bool
	c := &cobra.Command{
		Use:   "up TOPOLOGY",
		Short: "Start a whole deployment on a lab",
		Long: "Bring a topology to life and start Hydra on it: every site of three nodes or more is a cloud, whose last node has the\n" +
			"load balancer and the wallet and whose others are members that share an SQLite database; the first node of the first\n" +
			"other site is the witness, and the last one there has the DNS server. Ctrl-C ends all of it, and the lab.",
		Example: "  skerry hydra up topologies/two-clouds.yaml\n  skerry hydra up topologies/two-clouds.yaml --scale 0 --name hydra\n" +
			"  skerry lab exec third-2 -l hydra -- curl http://ADDRESS:8080/api/accounts",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cloud, err := topology.Load(args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if config.Exe, err = executable(); err != nil {
				return err
			}
			if config.Name == "" {
				config.Name = lab.NameOf(cloud.Name)
			}
			config.Topology, config.StateDir, config.Log, config.Ephemeral = cloud, a.stateDir, a.log, true
			l, err := lab.Up(cmd.Context(), config)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, l.Down(context.WithoutCancel(cmd.Context()))) }()
			if config.Scale == 0 && cmd.Flags().Changed("scale") {
				if err := l.Scale(cmd.Context(), 0); err != nil {
					return err
				}
			}
			layout, err := deploy.OnLab(l)
			if err != nil {
				return err
			}
			o.Exe, o.Insecure, o.Wallet = config.Exe, true, true
			d, err := deploy.Launch(cmd.Context(), layout, o, 0, a.log)
			if err != nil {
				return err
			}
			if err = a.showDeployment(d, o.Zone, asJSON); err == nil {
				<-cmd.Context().Done()
			}
			return errors.Join(err, d.Stop(context.WithoutCancel(cmd.Context())))
		},
	}
	c.Flags().StringVar(&config.Name, "name", "", "the lab's name (default the topology's)")
	c.Flags().StringVar(&config.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().Float64Var(&config.Scale, "scale", 1, "multiply every latency")
	c.Flags().StringVar(&o.Zone, "zone", "hydra.test", "the name under which the wallet is found")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "the `CLOUD` whose members should lead")
	c.Flags().BoolVar(&asJSON, "json", false, "print where everything is as one JSON object")
	return c
}
