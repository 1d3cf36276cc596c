package main

import (
	"os"

	"github.com/spf13/cobra"

	"skerry/internal/docgen"
	"skerry/internal/docgen/notice"
)

// newPackaging is hidden: make package and make notice ask it for what stands beside the program.
func newPackaging() *cobra.Command {
	c := &cobra.Command{Use: "packaging", Short: "Write what packages hold beside the program", Hidden: true}
	c.AddCommand(
		&cobra.Command{
			Use:   "man DIR",
			Short: "Write a man page for every command",
			Args:  cobra.ExactArgs(1),
			RunE:  func(cmd *cobra.Command, args []string) error { return docgen.Man(args[0], cmd.Root()) },
		},
		&cobra.Command{
			Use:   "notice REPOSITORY",
			Short: "Print the licences of what the program holds",
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return notice.Write(cmd.Context(), os.Stdout, args[0])
			},
		})
	return c
}
