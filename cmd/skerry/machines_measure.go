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

// leastMeasured is too short for any distribution.
const leastMeasured = time.Second

func newMachinesMeasure(a *app) *cobra.Command {
	var topology, trace string
	var asJSON bool
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "measure FILE",
		Short: "Measure what lies between machines, as a topology that emulates it",
		Long: "Measure for a time what lies between each two machines of a file, and write it as a topology: a site for\n" +
			"each site of the machines, or for the machine where it has none, and links with the round trip, its jitter\n" +
			"and distribution, the loss, and the rate that four TCP streams get each way. Round trips of all pairs are measured\n" +
			"at the same time, ten a second; rates after that, one pair after another. Each machine answers on a UDP and\n" +
			"a TCP port meanwhile, nobody but the others. --trace writes the course over time, too, which an\n" +
			"experiment's drift replays; what the trace tells second by second is then no jitter of the topology. The\n" +
			"exit code is 1 when a machine is out of reach or a pair does not answer; what was measured is written.",
		Example: `  skerry machines measure machines.yaml -o measured.yaml
  skerry machines measure machines.yaml -o measured.yaml --for 10m --trace measured.csv
  skerry run real.yaml --machines machines.yaml --set links=real
  skerry run real.yaml --set topology=measured.yaml
  skerry compare runs/REAL runs/EMULATED`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lasts < leastMeasured {
				return fmt.Errorf("%w: --for %v is too short for a distribution: give %v or more", cli.ErrUsage, unit.Duration(lasts), unit.Duration(leastMeasured))
			}
			list, o, err := a.machines(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(list) < 2 {
				return advice.With(fmt.Errorf("%w: %s has %d machine, and nothing lies between that", cli.ErrUsage, args[0], len(list)), "give two or more")
			}
			progress := a.Progress()
			p, err := check.Measure(cmd.Context(), list, o, lasts, func(stage string) { progress.Livef("%s", stage) })
			progress.Done()
			if err != nil {
				return fmt.Errorf("measuring between the machines of %s: %w", args[0], err)
			}
			if trace != "" {
				for i := range p.Pairs {
					p.Pairs[i].Steady(time.Duration(p.EveryMS * float64(time.Millisecond)))
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
				err = errors.Join(err, atomicfile.File(topology, writing(p.Topology)))
			}
			if trace != "" {
				err = errors.Join(err, atomicfile.File(trace, writing(p.Trace)))
			}
			if err == nil && !p.Whole() {
				err = errMachines
			}
			return err
		},
	}
	c.Flags().StringVarP(&topology, "output", "o", "", "the `FILE` to write the topology to, in place of one that is there (default standard output, unless --json)")
	c.Flags().StringVar(&trace, "trace", "", "write the course over time to a `FILE`, as a trace")
	c.Flags().DurationVar(&lasts, "for", time.Minute, "measure round trips for so long")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	return c
}

// writing writes what can be had as a text.
func writing(text func() ([]byte, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		b, err := text()
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
}
