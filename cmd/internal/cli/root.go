package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
	"skerry/internal/docgen/manual"
)

// NewRoot returns the root command of a program, without subcommands. Call Complete once they are added.
func NewRoot(a *App, name, short, version string) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         short,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().BoolP("verbose", "v", false, "print progress details on stderr")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if v, err := cmd.Flags().GetBool("verbose"); err == nil && v {
			a.Level.Set(slog.LevelDebug)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return advice.With(fmt.Errorf("%w: %w", ErrUsage, err), "see %s --help", cmd.CommandPath())
	})
	return root
}

// Complete adds the completion command and makes all commands report wrong arguments as usage errors.
func Complete(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	checkArguments(root)
}

// NewVersion returns the version command of a program.
func NewVersion(a *App, name, version string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: "Print the version of this program, the Go version that compiled it, and the operating system. A version\n" +
			"with a plus sign was built from a commit after a release: 0.1.0+g1f20c3a follows 0.1.0.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := about{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return a.PrintJSON(v)
			}
			_, err := fmt.Fprintf(a.Out, "%s %s (%s, %s)\n", name, v.Version, v.Go, v.System)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the version as JSON")
	return c
}

// about is the output of version --json.
type about struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// NewPages returns the hidden command that prints the documentation pages of a program for `make docs`.
func NewPages(a *App) *cobra.Command {
	return &cobra.Command{
		Use:    "pages",
		Short:  "Print the documentation of all commands as JSON",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.PrintJSON(manual.NewPages(cmd.Root())) },
	}
}

// NewMan returns the hidden command that writes man pages for `make package`.
func NewMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a man page for every command",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return manual.Write(args[0], cmd.Root()) },
	}
}

// HostFlag adds the flag --host, with further names that a server answers to.
func HostFlag(c *cobra.Command, hosts *[]string) {
	c.Flags().StringArrayVar(hosts, "host", nil, "additional host `NAME` to accept (repeatable)")
}

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
