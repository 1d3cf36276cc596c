package main

import (
	"github.com/spf13/cobra"

	"skerry/internal/docgen"
)

// newDocs is hidden: it serves those who change skerry, through make docs.
func newDocs(_ *app) *cobra.Command {
	var source string
	c := &cobra.Command{
		Use:    "docs DIR",
		Short:  "Write the generated documentation",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return docgen.Write(args[0], source, cmd.Root())
		},
	}
	c.Flags().StringVar(&source, "source", ".", "the repository's root, relative to the working directory")
	return c
}
