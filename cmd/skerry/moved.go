package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
)

// newMoved returns a hidden command that names the program that replaced skerry old. It is removed in the next version.
func newMoved(old, program string) *cobra.Command {
	return &cobra.Command{
		Use:                old,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return advice.With(fmt.Errorf("skerry %s is now the program %s", old, program),
				"run `%s` with the same arguments: %s --help", program, program)
		},
	}
}
