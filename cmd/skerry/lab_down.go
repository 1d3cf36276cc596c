package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/lab"
)

func newLabDown(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "End a lab with everything in it",
		Long: "End a lab: its processes, links, namespaces, control groups and directories. Nothing is left. A lab\n" +
			"that a running command made ends with that command and not by this one.",
		Example: `  skerry lab down
  skerry lab down azure8
  skerry lab down --all`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return advice.With(fmt.Errorf("%w: --all and %s", errUsage, args[0]), "give one of them")
			}
			if !all {
				found, err := lab.Find(cmd.Context(), a.stateDir, first(args))
				if err != nil {
					return err
				}
				return a.remove(cmd.Context(), found)
			}
			labs, err := lab.List(cmd.Context(), a.stateDir)
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
