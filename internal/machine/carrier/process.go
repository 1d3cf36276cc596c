package carrier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/wire"
)

const (
	// noise bounds what a login shell may say before an agent does, in lines and bytes of one.
	noise, noiseLine = 200, 4096
	// ending is how long an agent may take to end what it owns.
	ending = 2 * time.Minute
	// complaints is how much of what a carrier says is kept, in bytes.
	complaints = 2048
)

// process is the carrier's, here.
type process struct {
	cmd   *exec.Cmd
	conn  *wire.Conn
	said  *tail.Tail
	ended chan struct{}
	err   error // how it ended; valid once ended is closed
}

func launch(argv []string) (*process, error) {
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
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), said: tail.New(complaints), ended: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, ours, p.said
	p.cmd.WaitDelay = time.Second // a master connection of ssh keeps its standard error
	p.cmd.SysProcAttr = apart()
	if err := p.cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("%w: %w", ErrReach, err)
	}
	p.conn = wire.NewConn(out, in)
	go func() {
		defer close(p.ended)
		if err := p.cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
			p.err = err
		}
	}()
	return p, nil
}

// complaint is what the carrier, or what it ran, said of what went wrong. It is asked for where the
// connection has ended: the carrier ends, and what it complained of is then whole.
func (p *process) complaint() string {
	select {
	case <-p.ended:
	case <-time.After(time.Second):
	}
	lines := strings.FieldsFunc(p.said.String(), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// await reads up to a line that begins with a word, and returns the rest of it. What comes before, a
// login shell has said.
func (p *process) await(word string) (string, error) {
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
func (p *process) unanswered(err error) error {
	if c := p.complaint(); c != "" {
		return fmt.Errorf("%w: %s (%s: %w)", ErrReach, c, p.cmd.Args[0], err)
	}
	return fmt.Errorf("%w: %s said nothing: %w", ErrReach, p.cmd.Args[0], err)
}

// close ends the carrier's input, and the carrier itself where it takes longer than grace.
func (p *process) close(grace time.Duration) error {
	err := p.conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		_ = p.cmd.Process.Kill() // it may just have ended
		<-p.ended
		if grace > 0 {
			err = errors.Join(err, fmt.Errorf("the agent has not ended within %v", grace))
		}
		return err
	}
	if p.err != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", p.cmd.Args[0], p.err, p.complaint()))
	}
	return err
}
