package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/lab"
)

func newLabStatus(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the labs that are up",
		Long: "Show the labs that are up, here and on other machines: their nodes, which engine makes their links and why,\n" +
			"and what their machine could not give them. A lab is `damaged` when its emulator or its namespaces are gone. A\n" +
			"lab is `dead` when its command was killed: the next command that makes a lab clears it, and so does `skerry\n" +
			"lab sweep`.",
		Example: `  skerry lab status
  skerry lab status --json | jq '.[].nodes[].addr'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			labs, err := a.labs(cmd, first(args))
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(labs)
			}
			if len(labs) == 0 {
				_, err := fmt.Fprintln(a.Out, "no labs; make one with `skerry lab up azure8`")
				return err
			}
			return lab.PrintStatus(a.Out, labs, time.Now())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// labs are the one of that name, or all.
func (a *app) labs(cmd *cobra.Command, name string) ([]lab.Info, error) {
	if name == "" {
		labs, err := lab.List(cmd.Context(), a.stateDir)
		if err != nil {
			return nil, err
		}
		others, err := a.standingLabs(cmd.Context())
		for _, o := range others {
			labs = append(without(labs, o.Name), o)
		}
		return labs, err
	}
	l, err := a.findLab(cmd.Context(), name)
	if err != nil {
		return nil, err
	}
	return []lab.Info{l.Info}, l.close()
}
