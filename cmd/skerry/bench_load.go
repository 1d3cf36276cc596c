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
		Short: "Measure the cost of the load driver",
		Long: "Measure the load driver in operations per CPU-second: against a null database that answers at once, and against\n" +
			"one Redis on loopback if Redis is installed. --ycsb alternates with YCSB itself (see bench/ycsb-java). Part audit\n" +
			"measures the cost of tracking every write by its version, and the time to read back a million writes.",
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
	c.Flags().BoolVar(&o.Quick, "quick", false, "run fewer operations")
	c.Flags().StringVar(&o.YCSB, "ycsb", "", "compare with YCSB itself; `FOLDER` is the build of bench/ycsb-java")
	return c
}
