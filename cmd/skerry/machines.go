package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/machine/check"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/transport"
)

// errMachines is returned if some machines cannot be used.
var errMachines = errors.New("some machines are unusable")

// newMachines returns the group of commands on the machines in a machines file.
func newMachines(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "machines",
		Short: "Check, measure and clean up the machines in a machines file",
		Long: "Check, measure and clean up the machines in a machines file (docs/machines.md). They are reached by ssh, kubectl\n" +
			"or another command. If the skerry program is missing there or has another version, it is copied into a cache\n" +
			"folder. No service listens on the machines, and nothing runs there after the command.",
	}
	c.AddCommand(newMachinesCheck(a), newMachinesFromTofu(a), newMachinesMeasure(a), newMachinesSweep(a))
	return c
}

// machines reads a machines file, expands its clusters, and returns the options to reach the machines.
func (a *app) machines(ctx context.Context, path string) ([]inventory.Entry, transport.Options, error) {
	o := transport.Options{Log: a.Log}
	f, err := inventory.Load(path)
	var ps strict.Problems
	if errors.As(err, &ps) {
		return nil, o, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if err != nil {
		return nil, o, err
	}
	if o.Exe, err = executable(); err != nil {
		return nil, o, err
	}
	list, err := f.Expand(ctx)
	return list, o, err
}

func newMachinesCheck(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check machines, their clocks and the network between them",
		Long: "Check each machine in a file (as skerry doctor does), and measure the offset of its clock. For each pair of machines,\n" +
			"measure the round trip, the loss, and the rate of one TCP stream. Pairs are measured one after another, two seconds\n" +
			"each. Meanwhile the second machine of the pair accepts the first one on a UDP and a TCP port, and rejects all other\n" +
			"addresses. A pair without an answer is reported, but is no failure.\n" +
			"\n" +
			"The exit code is 0 when labs can run on every machine, 1 when a machine is unreachable or unusable, and 2 when the\n" +
			"file is invalid.",
		Example: "  skerry machines check machines.yaml\n  skerry machines check machines.yaml --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, o, err := a.machines(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := check.Check(cmd.Context(), list, o)
			if err != nil {
				return fmt.Errorf("checking the machines of %s: %w", args[0], err)
			}
			if asJSON {
				err = a.PrintJSON(r)
			} else {
				err = r.Write(a.Out)
			}
			if err == nil && !r.Usable() {
				err = errMachines
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the results as JSON")
	return c
}

func newMachinesSweep(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Remove the remains of killed commands on all machines",
		Long: "Remove the remains of commands that were killed, crashed or lost their network from all machines in a file, as\n" +
			"skerry lab sweep does on this machine. Running labs and labs of running commands stay. The exit code is 1 when a\n" +
			"machine is unreachable or a removal failed.",
		Example: "  skerry machines sweep machines.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, o, err := a.machines(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			swept, failed := check.Sweep(cmd.Context(), list, o)
			if asJSON {
				return errors.Join(a.PrintJSON(swept), failed)
			}
			for _, s := range swept {
				switch {
				case s.Problem != "":
				case len(s.Cleared) == 0:
					fmt.Fprintf(a.Out, "%s: nothing to remove\n", s.Name)
				default:
					fmt.Fprintf(a.Out, "%s: removed %s\n", s.Name, strings.Join(s.Cleared, ", "))
				}
			}
			return failed
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the removed objects as JSON")
	return c
}

// onMachines returns the setting that makes an experiment run its labs on the machines in a file.
func onMachines(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("resolve machines file %s: %w", file, err)
	}
	return "machines=" + strconv.Quote(path), nil
}

func newMachinesFromTofu(a *app) *cobra.Command {
	var asJSON bool
	var file string
	c := &cobra.Command{
		Use:   "from-tofu DIR...",
		Short: "Write a machines file from OpenTofu or Terraform outputs",
		Long: "Write a machines file for machines that OpenTofu or Terraform created in the given folders with the modules in\n" +
			"deploy/tofu (docs/howto/real-clouds.md). The command reads the output \"machines\" of \"tofu output -json\", or of\n" +
			"\"terraform output -json\" if there is no tofu. It does not create, change or contact machines. The exit code is 1\n" +
			"when the outputs have no machines, and 2 when they are invalid.",
		Example: "  tofu -chdir=lab apply\n  skerry machines from-tofu lab -o machines.yaml\n  skerry machines check machines.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := inventory.FromTofu(cmd.Context(), args)
			var ps strict.Problems
			if errors.As(err, &ps) {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if err != nil {
				return err
			}
			write := func(w io.Writer) error {
				if asJSON {
					return cli.EncodeJSON(w, f)
				}
				return yaml.NewEncoder(w, yaml.OmitZero()).Encode(f)
			}
			if file == "" {
				return write(a.Out)
			}
			if err := atomicfile.Write(file, write); err != nil {
				return err
			}
			machines := "machines"
			if len(f.Machines) == 1 {
				machines = "machine"
			}
			_, err = fmt.Fprintf(a.Out, "%d %s in %s; check with: skerry machines check %s\n", len(f.Machines), machines, file, file)
			return err
		},
	}
	c.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`, and replace an existing one (default standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, which is also valid as a machines file")
	return c
}

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
