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
		Short: "A metadata server's tree as a file system",
		Long: "Mount a metadata server's tree on a directory (FUSE) until interrupted or unmounted: ls, mkdir, mv, find and git\n" +
			"work on it. A file holds up to 1 MiB, is read when it is opened and written when it is closed. Permission bits\n" +
			"are kept, owners are those who mounted; links and extended attributes are not there. Where several servers share\n" +
			"the tree, each is asked for what it has: what others have stays when one is lost.",
		Example: "  metad mount 127.0.0.1:8080 /mnt/metadata",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.with(a, args[0], bearer.Write)
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
	c.Flags().DurationVar(&o.Cache, "cache", time.Second, "let the kernel answer names and attributes by itself for so long")
	return c
}
