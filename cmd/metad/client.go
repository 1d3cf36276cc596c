package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/mount"
	"skerry/systems/metadata/statustext"
)

// treeReach holds the flags of connections to a metadata server.
type treeReach struct{ tokenFile, authority string }

func (f *treeReach) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the bearer token (default: the token of --tokens auto, on this machine)")
	c.Flags().StringVar(&f.authority, "ca", "", "connect over HTTPS, and trust the authority with the certificate in `FILE`")
}

// options returns the options of a client with the given scope. addrs is a comma-separated list of addresses.
func (f *treeReach) options(a *cli.App, addrs string, wish bearer.Scope) ([]client.Option, error) {
	token, err := a.Token(f.tokenFile, wish, f.authority != "", strings.Split(addrs, ",")...)
	if err != nil {
		return nil, err
	}
	with := []client.Option{client.Token(token)}
	if f.authority != "" {
		config, err := ca.Trust(f.authority)
		if err != nil {
			return nil, err
		}
		with = append(with, client.TLS(config))
	}
	return with, nil
}

// open returns a client of the server at addrs.
func (f *treeReach) open(a *cli.App, addrs string, wish bearer.Scope) (*client.Client, error) {
	with, err := f.options(a, addrs, wish)
	if err != nil {
		return nil, err
	}
	return client.New(addrs, with...), nil
}

func newStatus(a *cli.App) *cobra.Command {
	var reach treeReach
	var asJSON bool
	c := &cobra.Command{
		Use:     "status ADDR",
		Short:   "Print the status of a metadata server",
		Example: "  metad status 127.0.0.1:8080",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.options(a, args[0], bearer.Read)
			if err != nil {
				return err
			}
			m := client.New(args[0], with...)
			defer m.Close()
			s, err := m.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(s)
			}
			w := client.NewStatusPoller(s.Servers, with...)
			defer w.Close()
			return statustext.WriteStatus(a.Out, s, w.Statuses(cmd.Context()))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	reach.add(c)
	return c
}

func newMount(a *cli.App) *cobra.Command {
	var reach treeReach
	var o mount.Options
	c := &cobra.Command{
		Use:   "mount ADDR DIR",
		Short: "Mount the tree of a metadata server as a file system",
		Long: "Mount the tree of a metadata server on a directory (FUSE) until interrupted or unmounted. ls, mkdir, mv, find and git\n" +
			"work on it. A file has up to 1 MiB, is read on open and written on close. Permission bits are stored. The owner of\n" +
			"all files is the user who mounted the tree. Links and extended attributes are not supported. If several servers share\n" +
			"the tree, each request goes to the responsible server. The other parts stay available when one server fails.",
		Example: "  metad mount 127.0.0.1:8080 /mnt/metadata",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.options(a, args[0], bearer.Write)
			if err != nil {
				return err
			}
			m, err := cluster.Connect(cmd.Context(), args[0], with...)
			if err != nil {
				return err
			}
			defer m.Close()
			o.Ready = func() { fmt.Fprintf(a.Out, "%s is mounted on %s\n", args[0], args[1]) }
			return mount.Run(cmd.Context(), m, args[1], o)
		},
	}
	reach.add(c)
	c.Flags().DurationVar(&o.Cache, "cache", time.Second, "time that the kernel caches names and attributes")
	return c
}

func newMember(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "member",
		Short: "Change the replicas of a running metadata server",
		Long: "Add or remove replicas of a running group. The other replicas need no restart. Give clients the new addresses.\n" +
			"`metad status` lists the replicas.",
	}
	var reach treeReach
	var within time.Duration
	add := &cobra.Command{
		Use:   "add ADDR NAME=PEER-ADDR",
		Short: "Add a replica to a group, and wait until it votes",
		Long: "Add a replica to the group at ADDR. Start the replica with --join on an empty directory first. The other replicas\n" +
			"reach it at PEER-ADDR. It receives the state of the group as a non-voting member. The leader makes it a voter when it\n" +
			"has caught up.",
		Example: "  metad serve --listen 10.0.0.4:8080 --data m4 --name m4 --join --member m4=10.0.0.4:9080 &\n" +
			"  metad member add 10.0.0.1:8080,10.0.0.2:8080 m4=10.0.0.4:9080",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, addr, ok := strings.Cut(args[1], "=")
			if !ok || name == "" || addr == "" {
				return fmt.Errorf("%w: %q is not NAME=PEER-ADDR", cli.ErrUsage, args[1])
			}
			m, err := reach.open(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			defer m.Close()
			slow := fmt.Errorf("%s is still catching up after %v", name, within)
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), within, slow)
			defer cancel()
			if err := m.AddMember(ctx, name, addr); err != nil {
				return err
			}
			if err := m.AwaitVote(ctx, name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is a voting replica\n", name)
			return err
		},
	}
	add.Flags().DurationVar(&within, "timeout", 10*time.Minute, "time to wait until the replica votes")
	remove := &cobra.Command{
		Use:   "remove ADDR NAME",
		Short: "Remove a replica from a group",
		Long: "Remove a replica from the group at ADDR. A running replica stops by itself. A leader transfers its leadership first.\n" +
			"The name cannot be reused.",
		Example: "  metad member remove 10.0.0.1:8080 m4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := reach.open(a, args[0], bearer.Admin)
			if err != nil {
				return err
			}
			defer m.Close()
			if err := m.RemoveMember(cmd.Context(), args[1]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%s is removed\n", args[1])
			return err
		},
	}
	reach.add(add)
	reach.add(remove)
	c.AddCommand(add, remove)
	return c
}

func newSettle(a *cli.App) *cobra.Command {
	older := cluster.LeftoverAge
	var reach treeReach
	c := &cobra.Command{
		Use:   "settle ADDR [TRANSACTION commit|abort]",
		Short: "Remove leftovers of servers, or end an orphaned transaction",
		Long: "Without a transaction, remove the leftovers of failed clients and servers from all servers that share the tree: copies\n" +
			"of directories that were being moved, and empty subtrees without a reference. Servers also do this after their start\n" +
			"and every hour, for subtrees that were unreferenced for half an hour. Objects that an unreachable server may need stay.\n" +
			"\n" +
			"With a transaction, end one that a server has prepared and whose coordinator is lost. `metad status` lists the\n" +
			"transactions of a server. Servers end them by themselves as soon as the coordinator answers; use this command only if\n" +
			"it never will. End the transaction in the same way on all servers that have it: with `commit` if one of them has\n" +
			"already committed it, else with `abort`.",
		Example: "  metad settle 10.0.1.1:8080\n" +
			"  metad status 10.0.1.1:8080\n  metad settle 10.0.1.1:8080 18912f3c2b6a7d10-5f1c2a3b abort",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 3 {
				return fmt.Errorf("%w: ADDR or ADDR TRANSACTION commit|abort required", cli.ErrUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return sweepServers(a, cmd, reach, args[0], older)
			}
			verb, known := map[string]metadata.Verb{"commit": metadata.Finish, "abort": metadata.Abort}[args[2]]
			if !known {
				return fmt.Errorf("%w: %q is neither commit nor abort", cli.ErrUsage, args[2])
			}
			with, err := reach.options(a, args[0], bearer.Write)
			if err != nil {
				return err
			}
			m := client.NewOwn(args[0], with...)
			defer m.Close()
			if r := m.DoOne(cmd.Context(), metadata.Step{Verb: verb, Txn: args[1]}.Command("/", "")); r.Err != nil {
				return r.Err
			}
			_, err = fmt.Fprintf(a.Out, "%s is settled\n", args[1])
			return err
		},
	}
	reach.add(c)
	c.Flags().DurationVar(&older, "older", older, "remove empty subtrees older than this, so that new ones stay")
	return c
}

// sweepServers removes the leftovers on all servers.
func sweepServers(a *cli.App, cmd *cobra.Command, reach treeReach, addr string, older time.Duration) error {
	with, err := reach.options(a, addr, bearer.Write)
	if err != nil {
		return err
	}
	tree, err := cluster.Connect(cmd.Context(), addr, with...)
	if err != nil {
		return err
	}
	defer tree.Close()
	var errs []error
	for _, server := range slices.Sorted(maps.Keys(tree.Asked())) {
		removed, err := tree.Sweep(cmd.Context(), server, older)
		errs = append(errs, err)
		for _, path := range removed {
			if _, err := fmt.Fprintf(a.Out, "%s: removed %s\n", server, path); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}
