package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/run/draft"
	"skerry/internal/topology"
)

// wizard writes a file from flags and answers.
type wizard[T draft.File] struct {
	draft     *T
	name      *string // of the file without .yaml; points into draft
	questions func(draft *T, places draft.Places, databases []string) []draft.Question
	check     func(draft T, path string) (made, error)
}

// made is a valid file before it is written.
type made struct {
	text  string
	cloud topology.Topology
	// describe prints what the file does.
	describe func() error
}

// run asks the questions, writes the file and prints the next command. It asks nothing if ready, or without a terminal.
func (w wizard[T]) run(a *app, cmd *cobra.Command, args []string, ready bool, next string) error {
	file := ""
	if len(args) == 1 {
		file = args[0]
		*w.name = nameOf(file, *w.name, cmd.Flags().Changed("name"))
	}
	if in, terminal := a.In.(*os.File); !ready && terminal && term.IsTerminal(int(in.Fd())) {
		line := liner.NewLiner()
		defer func() { _ = line.Close() }() // the terminal itself stays open
		answered, err := draft.Interview[T]{
			Line: reader(cmd.Context(), line), Out: a.Out, Databases: databaseNames(), Questions: w.questions,
			Check: func(d T) (draft.Places, error) {
				m, err := w.check(d, cmp.Or(file, "draft.yaml"))
				return draft.NewPlaces(m.cloud), err
			},
		}.Run(*w.draft)
		if err != nil {
			return err
		}
		*w.draft = answered
	}
	if file == "" {
		file = *w.name + ".yaml"
	}
	m, err := w.check(*w.draft, file)
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
	}
	if err := writeNew(file, m.text); err != nil {
		return err
	}
	if err := m.describe(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\n%s %s\n", next, file)
	return err
}

// reader returns a function that reads an answer from a terminal.
func reader(ctx context.Context, line *liner.State) func(question string, choices []string) (string, error) {
	line.SetCtrlCAborts(true)
	line.SetTabCompletionStyle(liner.TabPrints)
	return func(question string, choices []string) (string, error) {
		line.SetCompleter(func(begun string) (fit []string) {
			for _, c := range choices {
				if strings.HasPrefix(c, begun) {
					fit = append(fit, c)
				}
			}
			return fit
		})
		text, err := line.Prompt(question)
		if err != nil {
			return "", errors.Join(fmt.Errorf("no file written: %w", err), ctx.Err())
		}
		return text, nil
	}
}

// nameOf derives the name from the file name, unless a flag set it.
func nameOf(file, name string, given bool) string {
	base := file[strings.LastIndexByte(file, '/')+1:]
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	if given || base == "" {
		return name
	}
	return base
}

// writeNew writes a new file. It fails if the file exists.
func writeNew(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return advice.With(fmt.Errorf("%w: %s already exists", cli.ErrUsage, file), "choose another file name")
	} else if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
