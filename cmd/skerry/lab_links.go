package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/lab"
)

func newLabLinks(a *app) *cobra.Command {
	var asJSON, dot bool
	c := &cobra.Command{
		Use:   "links [NAME]",
		Short: "List the links of a lab",
		Long: "List the links of a lab with their current settings. JSON has both directions, with times in nanoseconds and\n" +
			"bandwidths in bit/s. base_ab and base_ba are the settings that `skerry lab set --scale` multiplies.",
		Example: `  skerry lab links
  skerry lab links --dot | neato -Tsvg >links.svg`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.findLab(cmd.Context(), first(args))
			if err != nil {
				return err
			}
			if err := l.close(); err != nil {
				return err
			}
			switch {
			case asJSON:
				return a.PrintJSON(l.Links)
			case dot:
				return lab.PrintDOT(a.Out, l.Info)
			}
			return lab.PrintLinks(a.Out, l.Info)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&dot, "dot", false, "print a Graphviz graph")
	c.MarkFlagsMutuallyExclusive("json", "dot")
	return c
}
