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
		Short: "Remove a lab",
		Long: "Remove a lab: its processes, links, namespaces, control groups and directories, on all its machines. A lab that\n" +
			"belongs to a running command ends with that command; lab down rejects it.",
		Example: `  skerry lab down
  skerry lab down azure8
  skerry lab down --all`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return advice.With(fmt.Errorf("%w: --all excludes the lab %s", cli.ErrUsage, args[0]), "give either --all or a name")
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
	c.Flags().BoolVar(&all, "all", false, "remove every lab that no running command owns")
	return c
}

// down removes a lab of this or other machines. The record of a lab on other machines stays until all of them have
// removed their parts.
func (a *app) down(ctx context.Context, f found) error {
	if f.standing == nil {
		return a.remove(ctx, f.Info)
	}
	err := f.on.Remove(ctx, f.Name)
	if errors.Is(err, lab.ErrNotFound) {
		err = nil // its creation did not complete
	}
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return multihost.OpenLabStore(a.stateDir).Remove(f.Name)
}
