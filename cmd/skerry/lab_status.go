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
		Short: "Show running labs",
		Long: "Show running labs on this and other machines: their nodes, their link engine with the reason for its choice, and\n" +
			"features that the machine lacks. A lab is `damaged` when its emulator or namespaces are missing. A lab is `dead`\n" +
			"when its command was killed; `skerry lab sweep` and the next command that creates a lab remove it.",
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
				_, err := fmt.Fprintln(a.Out, "no labs; create one with `skerry lab up azure8`")
				return err
			}
			return lab.PrintStatus(a.Out, labs, time.Now())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// labs returns the lab with that name, or all labs for "".
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
