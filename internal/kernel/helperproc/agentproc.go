// Package helperproc starts the processes that work for a lab beside the command that made it:
// this program again, as a hidden subcommand. One is told its job by a line of JSON on its
// standard input and answers by a line on its standard output.
package helperproc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// ErrNoCommand says that nothing was given to start.
var ErrNoCommand = errors.New("no command given")

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// Options of Start.
type Options struct {
	// Command is the program and its arguments.
	Command []string
	// LogFile is what the process's messages are appended to; default none.
	LogFile string
	// Env is added to this process's environment.
	Env []string
	// Owned keeps the process's standard input open until this process ends, however it
	// ends: so the agent learns that its owner is gone.
	Owned bool
	// Began, when set, is told of the process as soon as it runs, before its job.
	OnStart func(pid int) error
}

// Process is an agent at work.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	done  chan struct{}
	err   error // valid once done is closed
}

// Start starts an agent, tells it its job and returns what it answers. ctx bounds that, and
// not the agent's life. When it fails no process is left.
func Start(ctx context.Context, o Options, job any) (p *Process, answer []byte, err error) {
	if len(o.Command) == 0 {
		return nil, nil, ErrNoCommand
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	// A session of its own: Ctrl-C is for the command that takes the lab down, which still
	// needs what the agent does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = slices.Concat(os.Environ(), o.Env)
	if o.LogFile != "" {
		log, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("open log: %w", err)
		}
		defer log.Close()
		cmd.Stderr = log
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	p = &Process{cmd: cmd, stdin: stdin, log: o.LogFile, done: make(chan struct{})}
	answer, err = p.handshake(ctx, o, job, stdin, stdout)
	go func() { // ends with the process, which whoever has p ends
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	if err != nil {
		return nil, nil, errors.Join(err, p.Kill())
	}
	return p, answer, nil
}

func (p *Process) handshake(ctx context.Context, o Options, job any, stdin io.WriteCloser, stdout io.Reader) ([]byte, error) {
	if o.OnStart != nil {
		if err := o.OnStart(p.PID()); err != nil {
			return nil, err
		}
	}
	// Killing it ends what is under way below, whose own errors then say nothing.
	defer context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })()
	answer, err := p.exchange(o, job, stdin, stdout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

// exchange tells the process its job and returns its answer.
func (p *Process) exchange(o Options, job any, stdin io.WriteCloser, stdout io.Reader) ([]byte, error) {
	if err := json.NewEncoder(stdin).Encode(job); err != nil {
		return nil, fmt.Errorf("tell it its job: %w%s", err, p.LogTail())
	}
	if !o.Owned {
		if err := stdin.Close(); err != nil {
			return nil, err
		}
	}
	answer, err := bufio.NewReader(io.LimitReader(stdout, maxAnswer)).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("it ended before it was ready%s", p.LogTail())
	}
	return answer, nil
}

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitStatus tells how the process ended, once Done is closed: "exit status 1", with the last it
// said.
func (p *Process) ExitStatus() string {
	how := "by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return how + p.LogTail()
}

// Kill ends the process and waits for that. One that has ended is no error.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	p.Close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Close frees what an agent that has ended leaves.
func (p *Process) Close() { _ = p.stdin.Close() } // nobody reads it

// tailBytes is how much of a log goes into an error.
const tailBytes = 512

// LogTail is the end of the process's log, on lines of its own, or "".
func (p *Process) LogTail() string {
	if p.log == "" {
		return ""
	}
	log, err := os.ReadFile(p.log)
	log = bytes.TrimSpace(log)
	if err != nil || len(log) == 0 {
		return ""
	}
	return "\n" + string(log[max(0, len(log)-tailBytes):])
}
