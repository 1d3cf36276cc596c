package custom

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"skerry/internal/base/tail"
)

const (
	// maxLine bounds an answer.
	maxLine = 64 << 20
	// keptComplaint is how much of its standard error an error shows.
	stderrTail = 2 << 10
)

// program is a process.
type program struct {
	cmd     *exec.Cmd
	calls   int64
	in      io.WriteCloser
	lines   chan []byte // closed at its end
	stderr  *tail.Tail
	reading sync.WaitGroup
}

func startProgram(argv []string) (*program, error) {
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan []byte), stderr: tail.New(stderrTail)}
	p.cmd.Stderr = p.stderr
	// A group of its own: what it started ends with it, and holds none of its pipes open.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	p.reading.Go(func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
		for scanner.Scan() {
			p.lines <- append([]byte{}, scanner.Bytes()...)
		}
	})
	return p, nil
}

// call sends a request and returns the answer.
func (p *program) call(ctx context.Context, r request) (reply, error) {
	if deadline, ok := ctx.Deadline(); ok {
		r.TimeoutMS = max(1, time.Until(deadline).Milliseconds())
	}
	p.calls++
	r.ID = p.calls
	text, err := json.Marshal(r)
	if err != nil {
		return reply{}, err
	}
	if err := p.send(ctx, append(text, '\n')); err != nil {
		return reply{}, err
	}
	select {
	case line, ok := <-p.lines:
		var a reply
		if !ok {
			return a, errProgramEnded
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return a, fmt.Errorf("%w: %w in %.100q", errProtocol, err, line)
		}
		if a.ID != r.ID {
			return a, fmt.Errorf("%w: it answered %d where %d was asked: %.100q", errProtocol, a.ID, r.ID, line)
		}
		return a, nil
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
}

// send writes a line. A program that does not read its input is given up at the deadline.
func (p *program) send(ctx context.Context, line []byte) error {
	deadline, _ := ctx.Deadline() // the zero time is none
	if d, ok := p.in.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if err := d.SetWriteDeadline(deadline); err != nil {
			return fmt.Errorf("%w: %w", errProgramEnded, err)
		}
	}
	_, err := p.in.Write(line)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	case err != nil:
		return fmt.Errorf("%w: %w", errProgramEnded, err)
	}
	return nil
}

// kill ends the program and waits for it.
func (p *program) kill() error {
	p.signal()
	return p.wait()
}

func (p *program) signal() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) } // it may have ended

// wait waits for a program that is ending; how it ends does not matter.
func (p *program) wait() error {
	done := make(chan struct{})
	go func() { // so that the reader never stands still
		for range p.lines {
		}
		close(done)
	}()
	p.reading.Wait()
	<-done
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// stderrSuffix is what it said on its standard error, introduced, for the end of an error.
func (p *program) stderrSuffix() string {
	if s := p.stderr.String(); s != "" {
		return "; it complained: " + s
	}
	return ""
}
