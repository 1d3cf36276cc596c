package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/lab"
	"skerry/internal/run/multihost"
)

func newLabDown(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "End a lab with everything in it",
		Long: "End a lab: its processes, links, namespaces, control groups and directories, on all machines that it\n" +
			"stands on. Nothing is left. A lab\n" +
			"that a running command made ends with that command and not by this one.",
		Example: `  skerry lab down
  skerry lab down azure8
  skerry lab down --all`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return advice.With(fmt.Errorf("%w: --all and %s", cli.ErrUsage, args[0]), "give one of them")
			}
			if !all {
				found, err := a.findLab(cmd.Context(), first(args))
				if err != nil {
					return err
				}
				return a.down(cmd.Context(), found)
			}
			standing, err := multihost.OpenLabStore(a.stateDir).List()
			for _, s := range standing {
				f, failed := a.reachLab(cmd.Context(), s)
				if failed == nil {
					failed = a.down(cmd.Context(), f)
				}
				err = errors.Join(err, failed)
			}
			labs, failed := lab.List(cmd.Context(), a.stateDir)
			err = errors.Join(err, failed)
			for _, l := range labs {
				if l.State != lab.StateOwned {
					err = errors.Join(err, a.remove(cmd.Context(), l))
				}
			}
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "end every lab that no running command owns")
	return c
}

// down ends a lab, wherever it is. One on other machines is remembered until all of them have ended theirs.
func (a *app) down(ctx context.Context, f found) error {
	if f.standing == nil {
		return a.remove(ctx, f.Info)
	}
	err := f.on.Remove(ctx, f.Name)
	if errors.Is(err, lab.ErrNotFound) {
		err = nil // it was never whole
	}
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return multihost.OpenLabStore(a.stateDir).Remove(f.Name)
}
