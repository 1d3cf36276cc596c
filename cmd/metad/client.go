package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
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
