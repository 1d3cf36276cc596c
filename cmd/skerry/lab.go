package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/cmd/internal/labprep"
	"skerry/internal/base/advice"
	"skerry/internal/lab"
	"skerry/internal/machine/host"
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

func newLabDown(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Remove a lab",
		Long: "Remove a lab: its processes, links, namespaces, control groups and directories, on all its machines. A lab that\n" +
			"belongs to a running command ends with that command; lab down rejects it.",
		Example: `  skerry lab down
  skerry lab down azure8
  skerry lab down --all`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLab,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return advice.With(fmt.Errorf("%w: --all excludes the lab %s", cli.ErrUsage, args[0]), "give either --all or a name")
			}
			if !all {
				found, err := a.findLab(cmd.Context(), first(args))
				if err != nil {
					return err
				}
				return a.down(cmd.Context(), found)
			}
			standing, err := multihost.OpenLabStore(a.stateDir).List()
			for _, s := range standing {
				f, failed := a.reachLab(cmd.Context(), s)
				if failed == nil {
					failed = a.down(cmd.Context(), f)
				}
				err = errors.Join(err, failed)
			}
			labs, failed := lab.List(cmd.Context(), a.stateDir)
			err = errors.Join(err, failed)
			for _, l := range labs {
				if l.State != lab.StateOwned {
					err = errors.Join(err, a.remove(cmd.Context(), l))
				}
			}
			return err
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove every lab that no running command owns")
	return c
}

// down removes a lab of this or other machines. The record of a lab on other machines stays until all of them have
// removed their parts.
func (a *app) down(ctx context.Context, f found) error {
	if f.standing == nil {
		return a.remove(ctx, f.Info)
	}
	err := f.on.Remove(ctx, f.Name)
	if errors.Is(err, lab.ErrNotFound) {
		err = nil // its creation did not complete
	}
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return multihost.OpenLabStore(a.stateDir).Remove(f.Name)
}

func newLabSweep(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Remove the remains of killed commands",
		Long: "Remove the remains of commands that were killed, crashed or met a full disk: processes, namespaces, devices,\n" +
			"control groups and directories. Every command that creates a lab does this first. The command needs no disk space,\n" +
			"and removes only objects that skerry created.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return labprep.Sweep(cmd.Context(), a.App, a.stateDir) },
	}
}

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
