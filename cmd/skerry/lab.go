package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/lab"
	"skerry/internal/run/multihost"
)

// newLab returns the group of commands on labs outside experiments.
func newLab(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Create, inspect, change and remove labs",
		Long: "Create a lab from a topology: a network namespace, a control group and a directory for each node, and links with\n" +
			"the latency, bandwidth and loss of the topology. A lab runs until `skerry lab down`. Several labs can run at\n" +
			"once. If only one runs, its name is optional in all commands.",
	}
	c.AddCommand(newLabUp(a), newLabDown(a), newLabStatus(a), newLabLinks(a), newLabExec(a), newLabSet(a), newLabSweep(a))
	return c
}

// labFlag adds the flag --lab.
func (a *app) labFlag(c *cobra.Command, name *string) {
	c.Flags().StringVarP(name, "lab", "l", "", "`NAME` of the lab; optional if only one is running")
	_ = c.RegisterFlagCompletionFunc("lab", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.labNames(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) labNames(cmd *cobra.Command) []string {
	labs, _ := lab.List(cmd.Context(), a.stateDir) // without labs nothing is completed
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

// first returns the optional first argument, or "".
func first(args []string) string { return strings.Join(args[:min(1, len(args))], "") }
