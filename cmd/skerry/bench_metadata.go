package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/bench/metabench"
)

func newBenchMetadata(a *app) *cobra.Command {
	o := metabench.Options{}
	var quick bool
	c := &cobra.Command{
		Use:   "metadata",
		Short: "Measure the metadata service, beside HDFS' NameNode",
		Long: "Measure the metadata service: durable mkdir and ls over HTTP, operations without a network, reads beside a\n" +
			"writer, memory of a directory, recovery, takeover, one directory in parts on one to three servers; and HDFS' NameNode on\n" +
			"the same machine with the same durability, through its RPC client and by its own NNThroughputBenchmark. HDFS is\n" +
			"fetched into the cache when it is first needed (99 MB).",
		Example: "  skerry bench metadata\n  skerry bench metadata --quick --only http,hdfs\n  skerry bench metadata --only hot --hot 10000000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Exe, err = executable(); err != nil {
				return err
			}
			if quick {
				o.Duration = min(o.Duration, time.Second)
				o.Dirs, o.Memory, o.Entries = min(o.Dirs, 200_000), min(o.Memory, 200_000), min(o.Entries, 50_000)
			}
			o.Progress = func(what string) { a.log.Info("measure", "what", what) }
			r, err := metabench.Run(cmd.Context(), o)
			if errors.Is(err, metabench.ErrPart) {
				return advice.With(fmt.Errorf("%w: %w", errUsage, err), "parts are %s", strings.Join(metabench.Parts, ", "))
			}
			if err != nil {
				return err
			}
			return printBench(a, cmd, r)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Clients, "clients", 64, "that ask at the same time")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "of each measurement")
	f.IntVar(&o.Dirs, "dirs", 10_000_000, "directories that recovery reads")
	f.IntVar(&o.Memory, "memory-dirs", 1_000_000, "directories whose memory is measured")
	f.IntVar(&o.Entries, "hot", 200_000, "entries of a directory in parts that is filled and listed; 0: none is")
	f.Float64Var(&o.Share, "hot-cores", 0.2, "of a processor that each of its servers has, in a second measurement of creations; 0: none. Needs root")
	f.StringVar(&o.Dir, "dir", "", "scratch `DIR`, on the disk that is measured (default: the system's for temporary files)")
	f.StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(metabench.Parts, ", "))
	f.BoolVar(&quick, "quick", false, "a second a measurement, and fewer directories")
	return c
}
