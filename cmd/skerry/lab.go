package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/lab"
	"skerry/internal/run/multihost"
)

// newLab groups what brings topologies to life apart from experiments.
func newLab(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Bring a topology to life, look into it, change it, end it",
		Long: "Bring a topology to life: a network namespace, a control group and a directory for each node,\n" +
			"and links with the latency, bandwidth and loss that the topology gives them. A lab stays up until\n" +
			"`skerry lab down`. Several may be up; with one, its name may be left out everywhere.",
	}
	c.AddCommand(newLabUp(a), newLabDown(a), newLabStatus(a), newLabLinks(a), newLabExec(a), newLabSet(a), newLabSweep(a))
	return c
}

// labFlag lets a command name its lab where its arguments name something else.
func (a *app) labFlag(c *cobra.Command, name *string) {
	c.Flags().StringVarP(name, "lab", "l", "", "the lab's `NAME`; may be left out when one is up")
	// It fails for flags that do not exist only.
	_ = c.RegisterFlagCompletionFunc("lab", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.labNames(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) labNames(cmd *cobra.Command) []string {
	labs, _ := lab.List(cmd.Context(), a.stateDir) // nothing is completed where it fails
	names := make([]string, len(labs))
	for i, l := range labs {
		names[i] = l.Name
	}
	others, _ := multihost.OpenLabStore(a.stateDir).List()
	for _, s := range others {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// completeLab completes the name of a lab as the only argument.
func (a *app) completeLab(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.labNames(cmd), cobra.ShellCompDirectiveNoFileComp
}

// first is the argument that may be left out.
func first(args []string) string { return strings.Join(args[:min(1, len(args))], "") }
