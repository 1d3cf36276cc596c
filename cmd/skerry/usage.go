package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
)

// tellUsage has every command below root tell wrong arguments as what they are: the caller's, so
// that they exit with 2. A command of commands alone does not take one that it has not.
func tellUsage(c *cobra.Command) {
	check := c.Args
	if !c.Runnable() {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		check = unknownCommand
	}
	if check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil || errors.Is(err, errUsage) {
				return err
			}
			return advice.With(fmt.Errorf("%w: %s", errUsage, wrongArguments(cmd, args, err)), "see %s --help", cmd.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		tellUsage(sub)
	}
}

// wrongArguments says how the command is written in place of what Cobra says of its arguments' number.
func wrongArguments(cmd *cobra.Command, args []string, err error) string {
	form := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	switch {
	case !strings.Contains(cmd.Use, " ") && len(args) > 0:
		return fmt.Sprintf("%s takes no arguments, and %q is one", form, args[0])
	case !strings.Contains(err.Error(), "arg(s)"):
		return err.Error()
	case len(args) == 0:
		return "it is written " + form
	}
	return fmt.Sprintf("it is written %s, and here are %d arguments", form, len(args))
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
	if near := suggest.Nearest(args[0], known); near != "" {
		return advice.With(err, "did you mean %s?", near)
	}
	return advice.With(err, "see %s --help", cmd.CommandPath())
}
