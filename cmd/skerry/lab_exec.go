package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/lab"
	"skerry/internal/machine/host"
)

func newLabExec(a *app) *cobra.Command {
	var name string
	var container bool
	c := &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARG...]",
		Short: "Run a command on a node",
		Long: "Run a command on a node: in its network namespace and control group, with the names of the lab's nodes in\n" +
			"/etc/hosts. The command inherits the terminal, working directory and environment of the caller. On another\n" +
			"machine, working directory and environment are those of the machine. The exit code is that of the command.",
		Example: `  skerry lab exec Pune -- ping -c 3 Sydney
  skerry lab exec Pune -- bash
  skerry lab exec --lab far Sydney -- redis-cli -h Pune info
  skerry lab exec --container Pune -- redis-server --port 6379    behind the lab's service`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			l, _ := lab.Find(cmd.Context(), a.stateDir, name) // without a lab nothing is completed
			nodes := make([]string, len(l.Nodes))
			for i, n := range l.Nodes {
				nodes[i] = n.Name
			}
			return nodes, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				return advice.With(fmt.Errorf("%w: no command given", cli.ErrUsage), "start a shell with: skerry lab exec %s -- bash", args[0])
			}
			l, err := a.findLab(cmd.Context(), name)
			if err != nil {
				return err
			}
			if l.standing != nil {
				return errors.Join(a.execElsewhere(cmd.Context(), l, args[0], container, command), l.close())
			}
			if err := a.join(l.Info); err != nil {
				return err
			}
			request := host.Command{Path: command[0], Args: command[1:], Env: os.Environ()}
			if container {
				member, err := lab.OpenMember(cmd.Context(), a.stateDir, l.Name, args[0])
				if err != nil {
					return err
				}
				return member.Exec(request)
			}
			node, err := lab.OpenNode(cmd.Context(), a.stateDir, l.Name, args[0])
			if err != nil {
				return err
			}
			return node.Exec(request)
		},
	}
	c.Flags().SetInterspersed(false) // the words after the node belong to the command
	c.Flags().BoolVar(&container, "container", false, "run in the node's container, in a lab with a service")
	a.labFlag(c, &name)
	return c
}
