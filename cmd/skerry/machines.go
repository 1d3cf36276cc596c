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

// errMachines is the verdict on machines of which some are of no use.
var errMachines = errors.New("not every machine is of use")

// newMachines is the family of commands on the machines of a machines file.
func newMachines(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "machines",
		Short: "Look after the machines of a machines file",
		Long: "Look after the machines of a machines file (docs/machines.md). They are reached by the system's ssh, by\n" +
			"kubectl or by a command; the skerry program is put there where it is missing or another one, into a cache\n" +
			"folder. Nothing listens there, and nothing runs there when the command has ended.",
	}
	c.AddCommand(newMachinesCheck(a), newMachinesFromTofu(a), newMachinesMeasure(a), newMachinesSweep(a))
	return c
}

// machines reads a machines file, asks clusters for theirs, and says what all are reached with.
func (a *app) machines(ctx context.Context, path string) ([]inventory.Machine, transport.Options, error) {
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
		Short: "Tell what machines can do, how their clocks go, and what lies between them",
		Long: "Tell what each machine of a file can do (as skerry doctor), how far its clock is from this one's, and for each\n" +
			"two machines the round trip, the loss, and the rate of one TCP stream. The ways between machines are measured\n" +
			"one after the other, for two seconds each. For that time the second machine answers the first one, and nobody\n" +
			"else, on a UDP and a TCP port. A pair without an answer is told and is no failure.\n\n" +
			"The exit code is 0 when labs can run on every machine, 1 when a machine is out of reach or of no use, 2 when\n" +
			"the file is wrong.",
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
	c.Flags().BoolVar(&asJSON, "json", false, "print what was found as JSON")
	return c
}

func newMachinesSweep(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Clear on all machines what commands that were killed have left",
		Long: "Clear on all machines of a file what commands that were killed, crashed or lost their network have left,\n" +
			"as skerry lab sweep does on this one. Labs that are up, and those whose command runs, stay. The exit code\n" +
			"is 1 when a machine is out of reach or something could not be cleared.",
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
					fmt.Fprintf(a.Out, "%s: nothing was left\n", s.Name)
				default:
					fmt.Fprintf(a.Out, "%s: cleared %s\n", s.Name, strings.Join(s.Cleared, ", "))
				}
			}
			return failed
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was cleared as JSON")
	return c
}

// onMachines is the setting of an experiment that has its labs stand on the machines of a file.
func onMachines(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("finding the machines file %s: %w", file, err)
	}
	return "machines=" + strconv.Quote(path), nil
}
