package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/spell"
)

// tellUsage has every command below root tell wrong arguments as what they are: the caller's, so
// that they exit with 2. A command of commands alone does not take one that it has not.
func tellUsage(c *cobra.Command) {
	check := c.Args
	if check == nil && !c.Runnable() {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		check = unknownCommand
	}
	if check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil || errors.Is(err, errUsage) {
				return err
			}
			return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see %s --help", cmd.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		tellUsage(sub)
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s has no command %q", errUsage, cmd.CommandPath(), args[0])
	var known []string
	for _, sub := range cmd.Commands() {
		known = append(known, sub.Name())
	}
	if near := spell.Nearest(args[0], known); near != "" {
		return advice.With(err, "did you mean %s?", near)
	}
	return advice.With(err, "see %s --help", cmd.CommandPath())
}
