package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/bench/servicebench"
	"skerry/internal/database/redis"
	"skerry/internal/machine/volume"
)

func newBenchService(a *app) *cobra.Command {
	o := servicebench.Options{Effort: volume.Effort{Syncs: 500, Bytes: 256 << 20}}
	var quick bool
	c := &cobra.Command{
		Use:   "service",
		Short: "Measure what service networking and volumes cost",
		Long: "Measure what a request to a Redis Cluster costs through each kind of service networking against none,\n" +
			"and what volumes do: fsync and sequential throughput. All labs are up at once and are measured in turn,\n" +
			"round after round, each time in another order; intervals are over the rounds.",
		Example: `  skerry bench service
  skerry bench service --kinds service-ip,central --volumes= --rounds 20
  skerry bench service --kinds= --json     volumes alone`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if err := among("kinds", o.Kinds, servicebench.Kinds()); err != nil {
				return err
			}
			if err := among("volumes", o.Volumes, servicebench.VolumeKinds()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			o.Database = redis.New()
			if len(o.Kinds) > 0 {
				if o.Installation, err = o.Database.Find(""); err != nil {
					return err
				}
			}
			if quick {
				o.Rounds, o.Time, o.Records = 2, time.Second, 300
				o.Effort = volume.Effort{Syncs: 20, Bytes: 8 << 20}
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := servicebench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.Kinds, "kinds", servicebench.Kinds(), "of services, beside none; central needs `skerry install haproxy`")
	f.StringSliceVar(&o.Volumes, "volumes", servicebench.VolumeKinds(), "kinds of volumes, beside none")
	f.IntVar(&o.Rounds, "rounds", 10, "how often each is measured")
	f.DurationVar(&o.Time, "time", 10*time.Second, "for how long each time; half of it with one thread")
	f.IntVar(&o.Threads, "threads", 16, "where throughput is measured")
	f.Int64Var(&o.Records, "records", 10_000, "in the table, of 1 kB each")
	f.StringVar(&o.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	f.Uint64Var(&o.Seed, "seed", 7, "of the order, and of the requests")
	f.BoolVar(&quick, "quick", false, "two short rounds, to see that it works")
	return c
}

// among tells names that are not known.
func among(flag string, names, known []string) error {
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fmt.Errorf("%w: --%s %q: want %s", errUsage, flag, n, strings.Join(known, ", "))
		}
	}
	return nil
}
