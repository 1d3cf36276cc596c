// Package shell is a command line on a metadata server: its protocol with a current
// directory, completion of paths and history.
package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/peterh/liner"

	"skerry/internal/system/metadata"
	"skerry/internal/system/metadata/treeclient"
)

// ErrFailed means that a command failed; what was wrong has been printed.
var ErrFailed = errors.New("a command failed")

// Shell is a command line.
type Shell struct {
	Client  *treeclient.Client
	Out     io.Writer
	Err     io.Writer // of errors of commands
	History string    // the file that lines are kept in, "" for none
	dir     string
}

const help = metadata.Usage + `cd [PATH]                              the directory that paths without / are in
pwd                                    print it
help, exit
`

// Run runs the lines of a file, and tells by ErrFailed whether one failed.
func (s *Shell) Run(ctx context.Context, in io.Reader) error {
	s.dir = "/"
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 8<<20)
	failed := false
	for lines.Scan() && ctx.Err() == nil {
		end, err := s.Line(ctx, lines.Text())
		if err != nil {
			fmt.Fprintln(s.Err, err)
			failed = true
		}
		if end {
			break
		}
	}
	if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
		return err
	}
	if failed {
		return ErrFailed
	}
	return nil
}

// Line runs a line; end is true where it ends the shell.
func (s *Shell) Line(ctx context.Context, line string) (end bool, err error) {
	if s.dir == "" {
		s.dir = "/"
	}
	line = strings.TrimSpace(line)
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case "":
		return false, nil
	case "exit", "quit":
		return true, nil
	case "help":
		_, err := io.WriteString(s.Out, help)
		return false, err
	case "pwd":
		_, err := fmt.Fprintln(s.Out, s.dir)
		return false, err
	case "cd":
		return false, s.cd(ctx, rest)
	}
	if first[0] == '#' {
		return false, nil
	}
	c, err := metadata.ParseIn(s.dir, line)
	if err != nil {
		return false, err
	}
	return false, s.send(ctx, c)
}

// send asks the server in the words of the protocol, and prints what it prints.
func (s *Shell) send(ctx context.Context, c metadata.Command) error {
	answer, status, err := s.Client.Text(ctx, c.String())
	if err != nil {
		return err
	}
	if status != 200 {
		return errors.New(strings.TrimRight(string(answer), "\n"))
	}
	_, err = s.Out.Write(answer)
	return err
}

func (s *Shell) cd(ctx context.Context, where string) error {
	c := metadata.Command{Op: metadata.Stat, Path: "/"}
	if where != "" {
		var err error
		if c, err = metadata.ParseIn(s.dir, "stat "+where); err != nil {
			return err
		}
	}
	r := s.Client.One(ctx, c)
	if r.Err != nil {
		return r.Err
	}
	if len(r.Entries) == 1 && r.Entries[0].Kind == metadata.File {
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotDirectory}
	}
	s.dir = c.Path
	return nil
}

// Interact reads lines from the terminal until its end.
func (s *Shell) Interact(ctx context.Context) (err error) {
	s.dir = "/"
	l := liner.NewLiner()
	defer func() { err = errors.Join(err, l.Close()) }()
	l.SetCtrlCAborts(true)
	l.SetTabCompletionStyle(liner.TabPrints)
	l.SetWordCompleter(func(line string, pos int) (string, []string, string) {
		head, words := s.Complete(ctx, line[:pos])
		return head, words, line[pos:]
	})
	s.recall(l)
	for ctx.Err() == nil {
		line, err := l.Prompt(s.dir + "> ")
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			return s.keep(l)
		case err != nil:
			return err
		}
		l.AppendHistory(line)
		end, err := s.Line(ctx, line)
		if err != nil {
			fmt.Fprintln(s.Err, err)
		}
		if end {
			return s.keep(l)
		}
	}
	return ctx.Err()
}

// recall reads the history; there may be none.
func (s *Shell) recall(l *liner.State) {
	f, err := os.Open(s.History)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = l.ReadHistory(f) // what cannot be read is not recalled
}

func (s *Shell) keep(l *liner.State) error {
	if s.History == "" {
		return nil
	}
	if err := os.MkdirAll(path.Dir(s.History), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(s.History, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = l.WriteHistory(f)
	return errors.Join(err, f.Close())
}
