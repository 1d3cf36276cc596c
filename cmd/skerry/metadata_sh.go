package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skerry/internal/base/bearer"
	"skerry/internal/system/metadata/shell"
	"skerry/internal/system/metadata/treeclient"
)

func newMetadataSh(a *app) *cobra.Command {
	var reach treeReach
	c := &cobra.Command{
		Use:   "sh ADDR [COMMAND]",
		Short: "A shell on a metadata server",
		Long: "A shell on a metadata server, with completion of paths and history. Where several servers share the tree, another\n" +
			"one is asked when the one at ADDR is lost. With a command as the second argument,\n" +
			"that is run; with commands on standard input, a line each, those are. The exit code is 1 where one failed.",
		Example: "  skerry metadata sh 127.0.0.1:8080\n  skerry metadata sh 127.0.0.1:8080 'ls -l /'\n" +
			"  skerry metadata sh 127.0.0.1:8080 < commands.txt",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			with, err := reach.with(a, args[0], bearer.Write)
			if err != nil {
				return err
			}
			m, err := treeclient.Known(cmd.Context(), args[0], with...)
			if err != nil {
				return err
			}
			defer m.Close()
			s := &shell.Shell{Client: m, Out: a.out, Err: a.err}
			if len(args) == 2 {
				_, err := s.Line(cmd.Context(), args[1])
				return err
			}
			if f, ok := a.in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
				return s.Run(cmd.Context(), a.in)
			}
			state, err := os.UserCacheDir()
			if err == nil {
				s.History = filepath.Join(state, "skerry", "metadata-history")
			}
			return s.Interact(cmd.Context())
		},
	}
	reach.add(c)
	return c
}
