package main

import (
	"os"

	"github.com/spf13/cobra"

	"skerry/internal/docgen"
)

// newPackaging is hidden: make package and make notice ask it for what stands with the program.
func newPackaging() *cobra.Command {
	c := &cobra.Command{Use: "packaging", Short: "Write what packages hold with the program", Hidden: true}
	c.AddCommand(
		&cobra.Command{
			Use:   "notice REPOSITORY",
			Short: "Print the licences of what the program holds",
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return docgen.WriteNotice(cmd.Context(), os.Stdout, args[0])
			},
		})
	return c
}
