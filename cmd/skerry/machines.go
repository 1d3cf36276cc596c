package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/strict"
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
