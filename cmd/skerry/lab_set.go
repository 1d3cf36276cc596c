package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/lab"
)

func newLabSet(a *app) *cobra.Command {
	var name, direction string
	var scale float64
	c := &cobra.Command{
		Use:   "set LINK... SETTING=VALUE... | set --scale FACTOR",
		Short: "Change links while packets fly",
		Long: "Change links while packets fly; those in flight keep the time they were given. A link is named by its\n" +
			"ends, either first, and * and ? stand for any: Pune~Sydney, 'Pune~*'. A node means all its links.\n" +
			"If two nodes have several links, name one by its ID as skerry lab links shows it, Pune~Sydney#1 or\n" +
			"spare, or all of them as 'Pune~Sydney#*'. What is not given stays as it is. Settings, of each direction unless --direction says otherwise:\n\n" +
			lab.LinkSettingHelp() + "\n" +
			"--scale sets every latency to its base times a factor. A latency set here becomes the base at the\n" +
			"factor in force.",
		Example: `  skerry lab set Sydney~Pune latency=40ms bandwidth=100mbit loss=1%
  skerry lab set 'Pune~*' rtt=300ms
  skerry lab set Sydney~Pune --direction ab down=true
  skerry lab set Sydney~Pune#1 down=true
  skerry lab set --scale 2.5`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, _ := lab.Find(cmd.Context(), a.stateDir, name) // nothing is completed where it fails
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
				err = errors.New("give links and settings, or --scale FACTOR")
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
	c.Flags().StringVar(&direction, "direction", "both", "change the direction from the first end to the second (ab), back (ba), or both")
	return c
}

func adviceOr(err error, other string) string {
	if next := advice.Of(err); next != "" {
		return next
	}
	return other
}
