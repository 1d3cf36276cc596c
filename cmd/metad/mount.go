package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/mount"
)

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
