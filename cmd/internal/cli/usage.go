package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
)

// checkArguments makes c and all commands below it report wrong arguments as usage errors. A command that only
// groups others prints its help, and rejects the name of a command that it lacks.
func checkArguments(c *cobra.Command) {
	check := c.Args
	if !c.Runnable() {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		check = unknownCommand
	}
	if check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil || errors.Is(err, ErrUsage) {
				return err
			}
			return advice.With(fmt.Errorf("%w: %s", ErrUsage, wrongArguments(cmd, args, err)), "see %s --help", cmd.CommandPath())
		}
	}
	for _, sub := range c.Commands() {
		checkArguments(sub)
	}
}

// wrongArguments replaces Cobra's message about the number of arguments by the form of the command.
func wrongArguments(cmd *cobra.Command, args []string, err error) string {
	form := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	switch {
	case !strings.Contains(cmd.Use, " ") && len(args) > 0:
		return fmt.Sprintf("%s takes no arguments, got %q", form, args[0])
	case !strings.Contains(err.Error(), "arg(s)"):
		return err.Error()
	case len(args) == 0:
		return "missing arguments: " + form
	}
	return fmt.Sprintf("%s: got %d arguments", form, len(args))
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s has no command %q", ErrUsage, cmd.CommandPath(), args[0])
	var known []string
	for _, sub := range cmd.Commands() {
		known = append(known, sub.Name())
	}
	if near := suggest.Nearest(args[0], known); near != "" {
		return advice.With(err, "did you mean %s?", near)
	}
	return advice.With(err, "see %s --help", cmd.CommandPath())
}
