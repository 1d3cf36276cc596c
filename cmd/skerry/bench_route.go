package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/bench/routebench"
	"skerry/internal/lab/overlay"
	"skerry/internal/lab/overlay/kinds"
	"skerry/internal/topology"
)

func newBenchRoute(a *app) *cobra.Command {
	var o routebench.Options
	var names []string
	intervals := make(map[string]*time.Duration)
	c := &cobra.Command{
		Use:   "route",
		Short: "Measure how routing answers to links that fail",
		Long: "Measure how long packets are lost when a link fails that they take, how good the ways are that are\n" +
			"found then, and what the routing daemons cost. A link fails silently unless --carrier is given. --moves\n" +
			"measures how routing follows latency while no link fails: on three nodes, the way in use grows past another\n" +
			"and shrinks again, and moves between two ways that are nearly equal are counted for 30 s.",
		Example: `  skerry bench route
  skerry bench route --overlays tinc --failures 5 --ping-interval 5s --ping-timeout 2s
  skerry bench route --overlays babel --hello 40ms --carrier --json
  skerry bench route --nodes 8,16,32 --failures 0
  skerry bench route --failures 0 --moves 5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			for _, n := range o.Nodes {
				if n < 2 {
					return fmt.Errorf("%w: %d nodes: want 2 or more", errUsage, n)
				}
			}
			for _, n := range names {
				over := topology.Overlay{Kind: n, Settings: map[string]map[string]any{n: {}}}
				i := slices.IndexFunc(kinds.Registry(), func(a overlay.About) bool { return a.Name == n })
				if i < 0 {
					return fmt.Errorf("%w: overlay %q: want %s", errUsage, n, strings.Join(kinds.Names(), " or "))
				}
				for _, of := range kinds.Registry()[i].Intervals {
					if d := *intervals[of.Key]; d != 0 {
						over.Settings[n][of.Key] = d.String()
					}
				}
				o.Overlays = append(o.Overlays, over)
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := routebench.Run(cmd.Context(), o)
			if len(r.Overlays) > 0 { // meshes before the one that failed are measured
				err = errors.Join(err, printBench(a, cmd, r))
			}
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&names, "overlays", kinds.Names()[:1], "what to measure: "+strings.Join(kinds.Names(), ", "))
	f.IntSliceVar(&o.Nodes, "nodes", []int{8}, "of the meshes, measured one after the other; 8 are azure8")
	f.IntVar(&o.Links, "links", 0, "of each mesh (default eight a node)")
	f.IntVar(&o.Failures, "failures", 20, "how many links fail, one after the other")
	f.BoolVar(&o.Carrier, "carrier", false, "let nodes notice at once that a link is down")
	f.IntVar(&o.Moves, "moves", 0, "how often the latency of a way grows past another's; with the first of --nodes")
	f.DurationVar(&o.Heal, "heal", 2*time.Minute, "how long to wait for packets to arrive again")
	f.Uint64Var(&o.Seed, "seed", 7, "of the mesh and of what fails")
	for _, a := range kinds.Registry() {
		for _, i := range a.Intervals {
			intervals[i.Key] = f.Duration(strings.ReplaceAll(i.Key, "_", "-"), 0, i.Usage+" (default its own)")
		}
	}
	return c
}
