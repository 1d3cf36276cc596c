package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/bench/hydrabench"
	"skerry/internal/database"
	"skerry/internal/database/etcd"
)

func newBenchHydra(a *app) *cobra.Command {
	var o hydrabench.Options
	var quick bool
	c := &cobra.Command{
		Use:   "hydra",
		Short: "Measure Hydra: through Raft, past it, and etcd",
		Long: "Measure Hydra on a lab of two clouds 40 ms apart with a witness 20 ms from both, and at no distance: reads, writes and\n" +
			"mixes with 1 to 240 workers through Raft and past it, writes that each member answers when its database has them,\n" +
			"etcd's writes with three members at the same places and with five, the loss of the leader and of a cloud, a database\n" +
			"rebuilt from nothing, and the log's size on disk. Workers share connections, ten to one, with Hydra as with etcd. On a\n" +
			"quiet machine of two cores all of it takes about a quarter of an hour.",
		Example: "  skerry bench hydra\n  skerry bench hydra --quick\n  skerry bench hydra --only rebuild --rows 1000000 --scales 0",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if quick {
				o.Quick()
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			db := etcd.New()
			if in, err := database.Locate(db, "", ""); err == nil {
				o.Etcd, o.EtcdInstallation = db, in
			} else {
				fmt.Fprintln(a.err, "warning: without etcd:", err)
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := hydrabench.Run(cmd.Context(), o)
			if errors.Is(err, hydrabench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().IntSliceVar(&o.Workers, "workers", []int{1, 20, 60, 80, 160, 240}, "requests under way at once, in turn")
	c.Flags().DurationVar(&o.Time, "time", 3*time.Second, "of each measurement")
	c.Flags().IntVar(&o.Repeats, "repeats", 3, "measurements of each that a goal is about: the table has their median")
	c.Flags().IntVar(&o.Rows, "rows", 1_000_000, "of the database that is rebuilt from nothing")
	c.Flags().Int64Var(&o.MaxLog, "max-log", 32<<20, "bound of the log whose size is watched, in bytes")
	c.Flags().IntVar(&o.Trials, "trials", 3, "losses of the leader, and of a cloud")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: hydra, direct, etcd, failover, rebuild, log")
	c.Flags().Float64SliceVar(&o.Scales, "scales", []float64{1, 0}, "factors of the distances")
	c.Flags().StringVar(&o.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().BoolVar(&quick, "quick", false, "touch every part in a few minutes: fewer workers, rows, seconds")
	return c
}
