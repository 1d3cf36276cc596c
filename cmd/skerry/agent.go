package main

import "github.com/spf13/cobra"

// newAgent is the hidden family of commands that skerry starts itself as: processes
// that must not share a scheduler or a garbage collector with the rest.
func newAgent(a *app) *cobra.Command {
	c := &cobra.Command{Use: "agent", Hidden: true, Short: "Helper processes that skerry starts"}
	c.AddCommand(newAgentLink(a), newAgentLoad(a), newAgentHold(a), newAgentWireguard(a), newAgentStress(a), newAgentTask(a), newAgentMachine(a))
	return c
}
