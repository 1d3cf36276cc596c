package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
)

// newMoved returns a hidden command that reports which program has the commands below old now. It stays for one
// version.
func newMoved(old, program string) *cobra.Command {
	return &cobra.Command{
		Use:                old,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return advice.With(fmt.Errorf("skerry %s is a program of its own now: %s", old, program), "run `%s` with the same arguments: %s --help", program, program)
		},
	}
}
