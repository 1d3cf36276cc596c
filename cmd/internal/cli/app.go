// Package cli is what the programs of this module share: their root command, exit codes, usage errors,
// progress, logs and tokens.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skerry/internal/base/advice"
	"skerry/internal/base/bearer"
	"skerry/internal/base/progress"
)

// Exit codes, documented in docs/commands.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2 // wrong flags, arguments or input files; nothing was started
	ExitAssert      = 3 // every trial measured, but an assertion failed or, with --strict, a trial is suspect
	ExitInterrupted = 130
)

// ErrUsage marks errors of the command line. Nothing was started.
var ErrUsage = errors.New("usage")

// ExitStatus is the exit code of a command on a node, which has already printed its own errors.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// App is the environment of every command.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Reporter *progress.Reporter // logs are written through it, so that they do not break the progress line
	Log      *slog.Logger
	Level    *slog.LevelVar
}

// New returns an App that logs warnings and errors to errw.
func New(in io.Reader, out, errw io.Writer) *App {
	a := &App{In: in, Out: out, Err: errw, Reporter: newReporter(errw), Level: new(slog.LevelVar)}
	a.Level.Set(slog.LevelWarn)
	a.Log = slog.New(slog.NewTextHandler(a.Reporter, &slog.HandlerOptions{Level: a.Level}))
	return a
}

// Main runs a program's command line with a context that ends on SIGINT and SIGTERM, and returns the exit code.
//
// The first SIGINT ends the command and removes what it created. A second one ends the process at once. A second
// SIGTERM changes nothing: a rootless command sends one to its children, which received the terminal's Ctrl-C already.
func Main(run func(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Execute runs args on root, prints the error with its advice, and returns the exit code. The function codeOf maps
// errors of this program to exit codes; it may be nil, and returns 0 for an error that it does not map.
func (a *App) Execute(ctx context.Context, root *cobra.Command, args []string, codeOf func(error) int) int {
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	var status ExitStatus
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(a.Err, "%s: %v\n", root.Name(), err)
	if next := advice.Of(err); next != "" {
		fmt.Fprintln(a.Err, "  "+next)
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return ExitInterrupted
	case errors.Is(err, ErrUsage):
		return ExitUsage
	}
	if codeOf != nil {
		if code := codeOf(err); code != ExitOK {
			return code
		}
	}
	return ExitError
}

// Token returns the bearer token that a command sends to addrs, as bearer.Token does, and logs a warning if the
// token can be read on the way.
func (a *App) Token(file string, wish bearer.Scope, encrypted bool, addrs ...string) (string, error) {
	text, err := bearer.FindToken(file, wish, addrs...)
	if err == nil && text != "" && bearer.SentUnencrypted(encrypted, addrs...) {
		a.Log.Warn(bearer.UnencryptedWarning, "to", addrs)
	}
	return text, err
}

// LogAtInfo lowers the level of the log to info, for servers.
func (a *App) LogAtInfo() {
	if a.Level.Level() > slog.LevelInfo {
		a.Level.Set(slog.LevelInfo)
	}
}

// PrintJSON writes v to stdout as indented JSON.
func (a *App) PrintJSON(v any) error { return EncodeJSON(a.Out, v) }

// EncodeJSON writes v to w as indented JSON.
func EncodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Progress writes to the terminal behind stderr, if there is one.
func (a *App) Progress() *progress.Reporter { return a.Reporter }

func newReporter(w io.Writer) *progress.Reporter {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress.New(w, nil)
	}
	return progress.New(f, func() int { return columns(f) })
}

// Width returns the number of columns of the terminal behind stdout, 0 if stdout is no terminal.
func (a *App) Width() int {
	if f, ok := a.Out.(*os.File); ok {
		return columns(f)
	}
	return 0
}

func columns(f *os.File) int {
	cols, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return cols
}
