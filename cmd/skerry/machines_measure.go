package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/unit"
	"skerry/internal/machine/check"
)

// leastMeasured is the shortest measurement that yields a distribution.
const leastMeasured = time.Second

func newMachinesMeasure(a *app) *cobra.Command {
	var topology, trace string
	var asJSON bool
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "measure FILE",
		Short: "Measure the network between machines, as a topology that emulates it",
		Long: "Measure the network between each pair of machines in a file, and write it as a topology. It has a site for each site\n" +
			"of the machines, or for each machine without a site. Its links have the round trip, its jitter and distribution,\n" +
			"the loss, and the rate of four TCP streams in each direction. Round trips of all pairs are measured at once, ten\n" +
			"per second. Rates are measured afterwards, one pair after another. Meanwhile each machine accepts the other\n" +
			"machines on a UDP and a TCP port, and rejects all other addresses. --trace also writes the course over time, for\n" +
			"the drift event of an experiment; variation in the trace is then not part of the topology's jitter. The exit code\n" +
			"is 1 when a machine is unreachable or a pair does not answer; the other results are written anyway.",
		Example: `  skerry machines measure machines.yaml -o measured.yaml
  skerry machines measure machines.yaml -o measured.yaml --for 10m --trace measured.csv
  skerry run real.yaml --machines machines.yaml --set links=real
  skerry run real.yaml --set topology=measured.yaml
  skerry compare runs/REAL runs/EMULATED`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lasts < leastMeasured {
				return fmt.Errorf("%w: --for %v is too short for a distribution, minimum %v",
					cli.ErrUsage, unit.Duration(lasts), unit.Duration(leastMeasured))
			}
			list, o, err := a.machines(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(list) < 2 {
				return advice.With(fmt.Errorf("%w: %s has %d machine, need two", cli.ErrUsage, args[0], len(list)), "add machines to the file")
			}
			progress := a.Progress()
			p, err := check.Measure(cmd.Context(), list, o, lasts, func(stage string) { progress.Livef("%s", stage) })
			progress.Done()
			if err != nil {
				return fmt.Errorf("measuring between the machines of %s: %w", args[0], err)
			}
			if trace != "" {
				for i := range p.Pairs {
					p.Pairs[i].IsSteady(time.Duration(p.EveryMS * float64(time.Millisecond)))
				}
			}
			switch {
			case asJSON:
				err = a.PrintJSON(p)
			case topology != "":
				err = p.Write(a.Out)
			default:
				err = writing(p.Topology)(a.Out)
			}
			if topology != "" {
				err = errors.Join(err, atomicfile.Write(topology, writing(p.Topology)))
			}
			if trace != "" {
				err = errors.Join(err, atomicfile.Write(trace, writing(p.Trace)))
			}
			if err == nil && !p.IsComplete() {
				err = errMachines
			}
			return err
		},
	}
	c.Flags().StringVarP(&topology, "output", "o", "",
		"write the topology to `FILE`, and replace an existing one (default standard output, unless --json)")
	c.Flags().StringVar(&trace, "trace", "", "write the course over time to `FILE`, as a trace")
	c.Flags().DurationVar(&lasts, "for", time.Minute, "duration of the round-trip measurement")
	c.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	return c
}

// writing returns a function that writes the result of text.
func writing(text func() ([]byte, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		b, err := text()
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
}
