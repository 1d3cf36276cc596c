// Package transport reaches machines: it starts an agent there by whatever gives a process's
// standard input and output, ssh, kubectl or another command, and pushes the program first where
// that is missing or another one.
//
//	controller ── ssh ──► /bin/sh start.sh ──exec──► skerry agent machine
//	           "skerry carrier Linux x86_64"
//	SUM SIZE   "send" or "run"
//	program    "run"
//	           "skerry agent machine 1", and from there on HTTP/2 (package wire)
//
// Nothing listens there. What is left is the program, in a cache folder under its checksum.
package transport

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/remote"
	"skerry/internal/machine/rpc"
)

// Errors that callers tell apart.
var (
	// ErrReach says that nothing on the machine answered.
	ErrReach = errors.New("it cannot be reached")
	// ErrProgram says that the machine cannot be given this program.
	ErrProgram = errors.New("it cannot be given this program")
	// ErrAnother says that the agent there is another program than this one.
	ErrAnother = errors.New("its skerry is another one")
)

// Options are of all machines.
type Options struct {
	// Exe is this program's file.
	Exe string
	// Look starts an agent that makes nothing: it has the machine's own network where one
	// without root would have one of its own.
	Look bool
	// Log gets what is done, at level debug.
	Log *slog.Logger
}

// Connection is a machine with an agent that this process has started.
type Connection struct {
	*remote.Machine
	// Hello is what the agent said of itself.
	Hello rpc.Hello

	process *programProcess
}

//go:embed start.sh
var startScript string

// greetingTime is how long an agent may take to answer, a push included: the program has some 100 MB.
const greetingTime = 5 * time.Minute

// Open starts an agent on a machine. Errors begin with the machine's name. The agent is there until
// Close; ctx bounds the start alone.
func Open(ctx context.Context, m inventory.Machine, o Options) (*Connection, error) {
	c, err := open(ctx, m, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", m.Name, err)
		if argv, e := m.Shell("true"); e == nil && errors.Is(err, ErrReach) && advice.Of(err) == "" {
			err = advice.With(err, "try: %s", shown(argv))
		}
		return nil, err
	}
	return c, nil
}

// shown is a command as a person types it.
func shown(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if words[i] = w; strings.ContainsAny(w, " '\"$\\") {
			words[i] = inventory.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

func open(ctx context.Context, m inventory.Machine, o Options) (*Connection, error) {
	argv, pushes := m.Command, false
	if m.Command == nil {
		var err error
		if argv, err = m.Shell(script(m, o)); err != nil {
			return nil, err
		}
		pushes = true
	}
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	p, err := launch(argv)
	if err != nil {
		return nil, err
	}
	// Whatever is waited for ends with ctx.
	stop := context.AfterFunc(ctx, func() { p.conn.Close() })
	defer stop()
	c, err := p.agent(ctx, m, o, pushes)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, ctx.Err())
		}
		return nil, errors.Join(err, p.close(0))
	}
	return c, nil
}

// script is what a shell there runs.
func script(m inventory.Machine, o Options) string {
	run := `exec "$file" agent machine`
	if m.Sudo {
		run = `exec sudo -n "$file" agent machine`
	}
	if o.Look {
		run += " --look"
	}
	return startScript + run + "\n"
}

// agent brings up the agent, and asks it who it is.
func (p *programProcess) agent(ctx context.Context, m inventory.Machine, o Options, pushes bool) (*Connection, error) {
	if pushes {
		if err := p.push(ctx, o); err != nil {
			return nil, err
		}
	}
	line, err := p.await(rpc.Greeting)
	if err != nil {
		return nil, err
	}
	if want := fmt.Sprint(rpc.Version); line != want {
		return nil, fmt.Errorf("%w: it speaks version %s of what is said, this one %s", ErrAnother, line, want)
	}
	c := &Connection{Machine: remote.New(m.Name, p.conn, p.complaint), process: p}
	if c.Hello, err = c.Machine.Hello(ctx, !pushes); err != nil {
		return nil, err
	}
	if !pushes {
		err = same(c.Hello, o)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// same compares an agent that a command has started with this program.
func same(h rpc.Hello, o Options) error {
	b, err := find(o.Exe, h.OS, h.Arch)
	if err != nil {
		return err
	}
	if h.Program != b.sum {
		return advice.With(fmt.Errorf("%w: SHA-256 %.12s…, and %s here is %.12s…", ErrAnother, h.Program, b.path, b.sum), "copy %s there", b.path)
	}
	return nil
}

// Close has the agent end, with all that it owns, and waits for that.
func (c *Connection) Close() error {
	err := c.process.conn.Close()
	if e := c.process.close(ending); e != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", c.Name(), e))
	}
	return errors.Join(err, c.Machine.Close())
}
