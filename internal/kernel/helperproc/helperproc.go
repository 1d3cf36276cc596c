// Package helperproc starts helper processes of a lab: this program again, with a hidden subcommand. A helper
// reads its job as one line of JSON on standard input and answers with one line on standard output.
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

	"golang.org/x/sys/unix"
)

var ErrNoCommand = errors.New("no command given")

const maxAnswer = 1 << 20

type Options struct {
	// Command is the program with its arguments.
	Command []string
	// LogFile receives the process's log; empty discards it.
	LogFile string
	Env     []string
	// Owned keeps the helper's standard input open until this process ends for any reason. The helper
	// detects the end of its owner from that.
	Owned bool
	// OnStart, if set, is called with the process ID before the job is sent.
	OnStart func(pid int) error
}

// Process is a running helper.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	done  chan struct{}
	err   error // valid after done is closed
}

// Start starts a helper, sends its job and returns its answer. ctx bounds only this exchange. On an error no
// process is left.
func Start(ctx context.Context, o Options, job any) (p *Process, answer []byte, err error) {
	if len(o.Command) == 0 {
		return nil, nil, ErrNoCommand
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	// A new session: Ctrl-C must not reach the helper, because the command that removes the lab still
	// needs it.
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
	go func() { // ends with the process
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
	// Killing the process ends the exchange, whose own error is then meaningless.
	defer context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })()
	answer, err := p.exchange(o, job, stdin, stdout)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

// exchange sends the job and returns the answer.
func (p *Process) exchange(o Options, job any, stdin io.WriteCloser, stdout io.Reader) ([]byte, error) {
	if err := json.NewEncoder(stdin).Encode(job); err != nil {
		return nil, fmt.Errorf("send job: %w%s", err, p.LogTail())
	}
	if !o.Owned {
		if err := stdin.Close(); err != nil {
			return nil, err
		}
	}
	answer, err := bufio.NewReader(io.LimitReader(stdout, maxAnswer)).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("process ended before it was ready%s", p.LogTail())
	}
	return answer, nil
}

func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitStatus describes how the process ended, for example "exit status 1", with the end of its log. It is
// valid after Done.
func (p *Process) ExitStatus() string {
	how := "by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return how + p.LogTail()
}

// Kill kills the process and waits for its end. A process that has ended is no error.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	p.Close()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Close releases the resources of an ended process.
func (p *Process) Close() { _ = p.stdin.Close() }

// tailBytes bounds the part of a log in an error.
const tailBytes = 512

// LogTail returns the end of the process's log on separate lines, or "".
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

// RaiseFileLimit lets this process open 65,536 files, or as many as the hard limit allows.
func RaiseFileLimit() {
	const wanted = 1 << 16
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= wanted {
		return
	}
	raised := unix.Rlimit{Cur: wanted, Max: max(wanted, limit.Max)}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) != nil {
		// Without CAP_SYS_RESOURCE the hard limit is the maximum.
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit.Max, Max: limit.Max})
	}
}
