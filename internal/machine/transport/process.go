package transport

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/process"
	"skerry/internal/machine/rpc"
)

const (
	// noise bounds what a login shell may say before an agent does, in lines and bytes of one.
	noise, noiseLine = 200, 4096
	// ending is how long an agent may take to end what it owns.
	ending = 2 * time.Minute
	// complaints is how much of what a carrier says is kept, in bytes.
	complaints = 2048
)

// programProcess is the carrier's, here.
type programProcess struct {
	*process.Process
	name string
	conn *rpc.Conn
	said *tail.Tail
}

func launch(argv []string) (*programProcess, error) {
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	out, ours, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer ours.Close()
	cmd, said := exec.Command(argv[0], argv[1:]...), tail.New(complaints)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, ours, said
	cmd.WaitDelay = time.Second // a master connection of ssh keeps its standard error
	// A terminal's Ctrl-C is for this process, which then has the agents end what they own.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("%w: %w", ErrReach, err)
	}
	p := &programProcess{Process: process.New(cmd, argv[0], ""), name: argv[0], conn: rpc.NewConn(out, in), said: said}
	go p.Reap(nil)
	return p, nil
}

// complaint is what the carrier, or what it ran, said of what went wrong. It is asked for where the
// connection has ended: the carrier ends, and what it complained of is then whole.
func (p *programProcess) complaint() string {
	select {
	case <-p.Done():
	case <-time.After(time.Second):
	}
	lines := strings.FieldsFunc(p.said.String(), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// await reads up to a line that begins with a word, and returns the rest of it. What comes before, a
// login shell has said.
func (p *programProcess) await(word string) (string, error) {
	for range noise {
		line, err := p.conn.Line(noiseLine)
		if err != nil {
			return "", p.unanswered(err)
		}
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("%w: it says other things than %q", ErrReach, word)
}

// unanswered is the error of a carrier that ended before the agent was there.
func (p *programProcess) unanswered(err error) error {
	if c := p.complaint(); c != "" {
		return fmt.Errorf("%w: %s (%s: %w)", ErrReach, c, p.name, err)
	}
	return fmt.Errorf("%w: %s said nothing: %w", ErrReach, p.name, err)
}

// close ends the carrier's input. A carrier that takes longer than grace is killed, with what it has started:
// a shell's ssh is no child of ours.
func (p *programProcess) close(grace time.Duration) error {
	err := p.conn.Close()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		err = errors.Join(err, p.Kill())
		if grace > 0 {
			err = errors.Join(err, fmt.Errorf("the agent has not ended within %v", grace))
		}
		return err
	}
	if e := p.Err(); e != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", e, p.complaint()))
	}
	return err
}
