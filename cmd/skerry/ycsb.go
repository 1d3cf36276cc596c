package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/ycsbcli"
)

func newYCSB(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "ycsb",
		Short: "Run a YCSB workload against an existing cluster",
		Long: "Run a YCSB workload against an existing cluster, without a lab. Options and output format are those of YCSB. The\n" +
			"throughput counts successful operations only. Extensions to YCSB: open loops (--arrival), a hard timeout for every\n" +
			"operation, separate outcomes (ok, failed, unknown), and a load phase that retries failed inserts and verifies all\n" +
			"records. A warning names each property without effect.\n" +
			"\n" +
			"Several clients on one table need different values of --seed. Several loaders need different values of insertstart\n" +
			"and insertcount.",
	}
	c.AddCommand(
		newYCSBPhase(a, load.PhaseLoad, "Insert the records of the workload and verify them"),
		newYCSBPhase(a, load.PhaseRun, "Run the operations of the workload"),
	)
	return c
}

func newYCSBPhase(a *app, phase load.Phase, short string) *cobra.Command {
	o := ycsbcli.Options{Phase: phase}
	c := &cobra.Command{
		Use:   string(phase) + " DATABASE",
		Short: short,
		Example: fmt.Sprintf(`  skerry ycsb %[1]s redis -P workloada -p redis.host=127.0.0.1 -threads 16 -s
  skerry ycsb %[1]s null -P my.properties -p recordcount=100000 --json`, phase),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(databaseNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Database = args[0]
			if db, ok := findDatabase(o.Database); ok {
				o.ClientProperties = database.ClientProperties(db)
			}
			err := ycsbcli.Run(cmd.Context(), o, openDatabase, a.Out, a.Err)
			if errors.Is(err, ycsbcli.ErrOptions) {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.Files, "properties", "P", nil, "property `FILE`, or workloada to workloadf (repeatable; later ones win)")
	f.StringArrayVarP(&o.Set, "property", "p", nil, "set a property: `KEY=VALUE` (repeatable; overrides files)")
	f.IntVar(&o.Threads, "threads", 0, "number of workers, each with its own client (default: threadcount, or 1)")
	f.Float64Var(&o.Target, "target", 0, "operations per second (default: target, or unlimited)")
	f.BoolVarP(&o.Status, "status", "s", false, "print a status line on stderr every status.interval seconds (10)")
	f.DurationVar(&o.Timeout, "timeout", load.DefaultTimeout, "timeout of an operation")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of operations, keys and arrivals; use a different one for each client of a table")
	f.StringVar((*string)(&o.Arrival), "arrival", "", "closed (each worker waits for its answer), or constant or poisson at the target rate")
	f.IntVar(&o.MaxInFlight, "in-flight", 0,
		fmt.Sprintf("maximum number of operations in flight of an open loop (default %d)", load.DefaultMaxInFlight))
	f.StringVar((*string)(&o.AfterStall), "after-stall", "",
		"after a stall: catchup (send delayed operations late) or skip (count them as dropped)")
	f.StringVar(&o.HDR, "hdr", "", "write HdrHistogram logs to `FOLDER`")
	f.BoolVar(&o.JSON, "json", false, "print a JSON object instead of the text of YCSB")
	switch phase {
	case load.PhaseLoad:
		f.IntVar(&o.Batch, "batch", 1, "records per request, for databases with batches (MySQL's family, PostgreSQL, etcd, HBase)")
		f.BoolVar(&o.NoVerify, "no-verify", false, "do not verify the inserted records")
	case load.PhaseRun:
		f.DurationVar(&o.Duration, "duration", 0, "end after this time instead of operationcount (keys are still drawn for operationcount)")
		f.DurationVar(&o.Warmup, "warmup", 0, "run for this time before the measurement")
	}
	return c
}

// doubleDashes accepts -threads 16 and -target 1000, as YCSB does, although other flags with one dash have one letter.
func doubleDashes(args []string) []string {
	if len(args) == 0 || args[0] != "ycsb" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		if name == "-threads" || name == "-target" {
			out[i] = "-" + arg
		}
	}
	return out
}
