// Package transport connects to machines. It starts an agent through a command that provides standard
// input and output: ssh, kubectl or another one. If the machine lacks this program, or has another
// version, it pushes the program first.
//
//	controller ── ssh ──► /bin/sh start.sh ──exec──► skerry agent machine
//	           "skerry carrier Linux x86_64"
//	SUM SIZE   "send" or "run"
//	program    "run"
//	           "skerry agent machine 2", and from there on HTTP/2 (package rpc)
//
// No port is opened on the machine. Only the program remains, in a cache directory, named by its checksum.
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

// Errors of Open.
var (
	// ErrUnreachable is returned if nothing on the machine answered.
	ErrUnreachable = errors.New("machine is unreachable")
	// ErrNoProgram is returned if the program cannot be copied to the machine.
	ErrNoProgram = errors.New("cannot install skerry on the machine")
	// ErrProgramMismatch is returned if the agent is another program than this one.
	ErrProgramMismatch = errors.New("agent is another version of skerry")
)

// Options apply to all machines.
type Options struct {
	// Exe is the path of this program.
	Exe string
	// Inspect starts a read-only agent. Without root it stays in the machine's network namespace.
	Inspect bool
	// Log receives debug messages.
	Log *slog.Logger
}

// Connection is a connection to an agent that this process started.
type Connection struct {
	*remote.Machine
	// Hello is the self-description of the agent.
	Hello rpc.Hello

	process *agentProcess
}

//go:embed start.sh
var startScript string

// greetingTime is the timeout for starting an agent, including the push of a program of about 100 MB.
const greetingTime = 5 * time.Minute

// Open starts an agent on a machine. The agent runs until Close; ctx limits only the start. Errors
// begin with the machine's name.
func Open(ctx context.Context, m inventory.Entry, o Options) (*Connection, error) {
	c, err := openConnection(ctx, m, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", m.Name, err)
		if argv, e := m.Shell("true"); e == nil && errors.Is(err, ErrUnreachable) && advice.Of(err) == "" {
			err = advice.With(err, "try: %s", formatCommand(argv))
		}
		return nil, err
	}
	return c, nil
}

// formatCommand formats a command for a shell.
func formatCommand(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if words[i] = w; strings.ContainsAny(w, " '\"$\\") {
			words[i] = inventory.Quote(w)
		}
	}
	return strings.Join(words, " ")
}

func openConnection(ctx context.Context, m inventory.Entry, o Options) (*Connection, error) {
	argv, pushes := m.Command, false
	if m.Command == nil {
		var err error
		if argv, err = m.Shell(buildScript(m, o)); err != nil {
			return nil, err
		}
		pushes = true
	}
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	p, err := startProcess(argv)
	if err != nil {
		return nil, err
	}
	// Closing the connection ends all pending reads and writes.
	stop := context.AfterFunc(ctx, func() { p.conn.Close() })
	defer stop()
	c, err := p.startAgent(ctx, m, o, pushes)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, ctx.Err())
		}
		return nil, errors.Join(err, p.close(0))
	}
	return c, nil
}

// buildScript returns the script for the remote shell.
func buildScript(m inventory.Entry, o Options) string {
	run := `exec "$file" agent machine`
	if m.Sudo {
		run = `exec sudo -n "$file" agent machine`
	}
	if o.Inspect {
		run += " --look"
	}
	return startScript + run + "\n"
}

// startAgent starts the agent and requests its self-description.
func (p *agentProcess) startAgent(ctx context.Context, m inventory.Entry, o Options, pushes bool) (*Connection, error) {
	if pushes {
		if err := p.pushProgram(ctx, o); err != nil {
			return nil, err
		}
	}
	line, err := p.readUntil(rpc.Greeting)
	if err != nil {
		return nil, err
	}
	if want := fmt.Sprint(rpc.Version); line != want {
		return nil, fmt.Errorf("%w: agent speaks protocol %s, want %s", ErrProgramMismatch, line, want)
	}
	c := &Connection{Machine: remote.New(m.Name, p.conn, p.stderrText), process: p}
	if c.Hello, err = c.Machine.Hello(ctx, !pushes); err != nil {
		return nil, err
	}
	if !pushes {
		err = checkProgram(c.Hello, o)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// checkProgram compares the checksum of a running agent with this program.
func checkProgram(h rpc.Hello, o Options) error {
	b, err := findProgram(o.Exe, h.OS, h.Arch)
	if err != nil {
		return err
	}
	if h.Program != b.sum {
		return advice.With(fmt.Errorf("%w: SHA-256 %.12s…, and %s here is %.12s…", ErrProgramMismatch, h.Program, b.path, b.sum), "copy %s there", b.path)
	}
	return nil
}

// Close ends the agent and everything that it owns, and waits for it.
func (c *Connection) Close() error {
	err := c.process.conn.Close()
	if e := c.process.close(closeTimeout); e != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", c.Name(), e))
	}
	return errors.Join(err, c.Machine.Close())
}
