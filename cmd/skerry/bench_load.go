package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/bench/loadbench"
	"skerry/internal/database/all"
	"skerry/internal/database/redis"
)

func newBenchLoad(a *app) *cobra.Command {
	var o loadbench.Options
	c := &cobra.Command{
		Use:   "load",
		Short: "Measure what the load driver costs",
		Long: "Measure the load driver: operations per CPU-second against a database that answers at once, and where Redis\n" +
			"is installed, against one Redis on loopback; with --ycsb in turns with YCSB itself (see bench/ycsb-java). Part audit\n" +
			"is what knowing every write by its version costs, and how long reading a million of them back takes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Exe, err = executable(); err != nil {
				return err
			}
			if in, err := all.Databases()[redis.Name].Find("", ""); err == nil {
				o.Server, o.Env = in.Programs["redis-server"], in.Env
				o.Open = all.Databases()[redis.Name].Open
			}
			o.Progress = func(what string) { a.Log.Info("measure", "what", what) }
			r, err := loadbench.Run(cmd.Context(), o)
			if errors.Is(err, loadbench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	c.Flags().StringSliceVar(&o.Only, "only", nil, "parts to measure: null, redis, audit")
	c.Flags().BoolVar(&o.Quick, "quick", false, "do fewer operations")
	c.Flags().StringVar(&o.YCSB, "ycsb", "", "compare with YCSB itself: the `FOLDER` that bench/ycsb-java was built in")
	return c
}
