package main

import (
	"os"

	"github.com/spf13/cobra"

	"skerry/internal/docgen"
)

// newPackaging returns the hidden commands of `make package` and `make notice`.
func newPackaging() *cobra.Command {
	c := &cobra.Command{Use: "packaging", Short: "Write files for packages", Hidden: true}
	c.AddCommand(
		&cobra.Command{
			Use:   "notice REPOSITORY",
			Short: "Print the licences of the dependencies",
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return docgen.WriteNotice(cmd.Context(), os.Stdout, args[0])
			},
		})
	return c
}
