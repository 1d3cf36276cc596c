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
		Short: "Drive any running cluster with a YCSB workload, without a lab",
		Long: "Drive any running cluster with a YCSB workload, without a lab. The options are YCSB's own, and so is the text\n" +
			"on stdout; a throughput counts the operations that succeeded. Beyond YCSB: open loops (--arrival), a hard\n" +
			"timeout of every operation, outcomes told apart (ok, failed, unknown), and a load phase that tries failed\n" +
			"inserts again and then verifies that every record is there. A warning names each property that has no effect.\n\n" +
			"Several clients of one table need a --seed each; loaders need an insertstart and an insertcount each.",
	}
	c.AddCommand(
		newYCSBPhase(a, load.PhaseLoad, "Insert the workload's records and verify that they are there"),
		newYCSBPhase(a, load.PhaseRun, "Run the workload's operations"),
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
	f.StringArrayVarP(&o.Files, "properties", "P", nil, "property `FILE`, or workloada to workloadf (repeatable, the last is strongest)")
	f.StringArrayVarP(&o.Set, "property", "p", nil, "set a property: `KEY=VALUE` (repeatable, over the files)")
	f.IntVar(&o.Threads, "threads", 0, "workers, each with a client of its own (default: threadcount, or 1)")
	f.Float64Var(&o.Target, "target", 0, "operations a second (default: target, or unlimited)")
	f.BoolVarP(&o.Status, "status", "s", false, "a status line on stderr every status.interval seconds (10)")
	f.DurationVar(&o.Timeout, "timeout", load.DefaultTimeout, "time that an operation may take")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of operations, keys and arrivals; give each client of a table its own")
	f.StringVar((*string)(&o.Arrival), "arrival", "", "closed (each worker waits for its answer), or at the target's rate: constant, poisson")
	f.IntVar(&o.MaxInFlight, "in-flight", 0, fmt.Sprintf("bound on operations in flight of an open loop (default %d)", load.DefaultMaxInFlight))
	f.StringVar((*string)(&o.AfterStall), "after-stall", "", "catchup (send what was due, late) or skip (count it as dropped)")
	f.StringVar(&o.HDR, "hdr", "", "write HdrHistogram logs into this `FOLDER`")
	f.BoolVar(&o.JSON, "json", false, "print a JSON object in place of YCSB's text")
	switch phase {
	case load.PhaseLoad:
		f.IntVar(&o.Batch, "batch", 1, "records a request, where the database takes many at once (MySQL's family, PostgreSQL, etcd, HBase)")
		f.BoolVar(&o.NoVerify, "no-verify", false, "do not look whether every record is there")
	case load.PhaseRun:
		f.DurationVar(&o.Duration, "duration", 0, "end after this time, not after operationcount (keys are still drawn for operationcount)")
		f.DurationVar(&o.Warmup, "warmup", 0, "drive for this time first, and leave it out of the result")
	}
	return c
}

// doubleDashes lets YCSB's users type -threads 16 and -target 1000, which is not how
// flags of one letter work elsewhere.
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
