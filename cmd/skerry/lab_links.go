package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
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

func newLabSet(a *app) *cobra.Command {
	var name, direction string
	var scale float64
	c := &cobra.Command{
		Use:   "set LINK... SETTING=VALUE... | set --scale FACTOR",
		Short: "Change links of a running lab",
		Long: "Change links of a running lab. Packets in flight keep their old delay. A link is named by its ends in either\n" +
			"order, with the wildcards * and ?: Pune~Sydney, 'Pune~*'. A node stands for all its links. If two nodes have\n" +
			"several links, name one by its ID from skerry lab links, such as Pune~Sydney#1 or spare, or all of them as\n" +
			"'Pune~Sydney#*'. Other settings stay unchanged. Settings apply to both directions unless --direction is given:\n" +
			"\n" +
			lab.LinkSettingHelp() + "\n" +
			"--scale sets every latency to its base times a factor. A latency set by this command becomes the new base at the\n" +
			"current factor.",
		Example: `  skerry lab set Sydney~Pune latency=40ms bandwidth=100mbit loss=1%
  skerry lab set 'Pune~*' rtt=300ms
  skerry lab set Sydney~Pune --direction ab down=true
  skerry lab set Sydney~Pune#1 down=true
  skerry lab set --scale 2.5`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, _ := lab.Find(cmd.Context(), a.stateDir, name) // without a lab nothing is completed
			var words []string
			for _, k := range l.Links {
				words = append(words, k.ID)
			}
			if len(args) > 0 {
				words = append(words, lab.LinkSettingNames()...)
			}
			return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			request, err := lab.ParseLinkRequest(args, lab.EditDirection(direction))
			if err == nil && request.Empty() != cmd.Flags().Changed("scale") {
				err = errors.New("links with settings or --scale FACTOR required")
			}
			if err != nil {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "%s", adviceOr(err, "see skerry lab set --help"))
			}
			found, err := a.findLab(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, found.close()) }()
			if err := a.join(found.Info); err != nil {
				return err
			}
			l, err := lab.AttachOn(cmd.Context(), found.on, found.Name)
			if err != nil {
				return err
			}
			defer l.Close()
			if request.Empty() {
				return l.Scale(cmd.Context(), scale)
			}
			changes, err := request.Changes(l.Links())
			if err != nil {
				return err
			}
			return l.Set(cmd.Context(), changes)
		},
	}
	a.labFlag(c, &name)
	c.Flags().Float64Var(&scale, "scale", 1, "set every latency to its base times `FACTOR`")
	c.Flags().StringVar(&direction, "direction", "both", "direction to change: ab (first end to second), ba, or both")
	return c
}

func adviceOr(err error, other string) string {
	if next := advice.Of(err); next != "" {
		return next
	}
	return other
}
