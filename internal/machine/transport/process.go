package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
	"skerry/internal/machine/files"
	"skerry/internal/machine/process"
	"skerry/internal/machine/rpc"
)

const (
	// maxNoiseLines and maxLineBytes limit the output of a login shell before the agent's greeting.
	maxNoiseLines, maxLineBytes = 200, 4096
	// closeTimeout is the time for an agent to end everything that it owns.
	closeTimeout = 2 * time.Minute
	// maxStderrBytes is how much of the transport's standard error is retained.
	maxStderrBytes = 2048
)

// agentProcess is the local transport process, such as ssh.
type agentProcess struct {
	*process.Process
	name   string
	conn   *rpc.Conn
	stderr *tail.Tail
}

func startProcess(argv []string) (*agentProcess, error) {
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
	cmd, said := exec.Command(argv[0], argv[1:]...), tail.New(maxStderrBytes)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, ours, said
	cmd.WaitDelay = time.Second // a master connection of ssh keeps its standard error
	// The terminal's Ctrl-C must reach only this process, which then ends the agents properly.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p := &agentProcess{Process: process.New(cmd, argv[0], ""), name: argv[0], conn: rpc.NewConn(out, in), stderr: said}
	go p.Reap(nil)
	return p, nil
}

// stderrText returns the standard error of the transport. Call it after the connection has ended. It
// waits up to a second for the process, so that the text is complete.
func (p *agentProcess) stderrText() string {
	select {
	case <-p.Done():
	case <-time.After(time.Second):
	}
	lines := strings.FieldsFunc(p.stderr.String(), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}

// readUntil skips lines, such as a login shell's, up to one with the given prefix. It returns the rest of
// that line.
func (p *agentProcess) readUntil(word string) (string, error) {
	for range maxNoiseLines {
		line, err := p.conn.ReadLine(maxLineBytes)
		if err != nil {
			return "", p.startError(err)
		}
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("%w: no line begins with %q", ErrUnreachable, word)
}

// startError returns the error of a transport that ended before the agent started.
func (p *agentProcess) startError(err error) error {
	if c := p.stderrText(); c != "" {
		return fmt.Errorf("%w: %s (%s: %w)", ErrUnreachable, c, p.name, err)
	}
	return fmt.Errorf("%w: no output from %s: %w", ErrUnreachable, p.name, err)
}

// close ends the transport's input. After grace it kills the process group, because the ssh of a shell
// is not a child of this process.
func (p *agentProcess) close(grace time.Duration) error {
	err := p.conn.Close()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-late.C:
		err = errors.Join(err, p.Kill())
		if grace > 0 {
			err = errors.Join(err, fmt.Errorf("agent still running after %v", grace))
		}
		return err
	}
	if e := p.Err(); e != nil {
		err = errors.Join(err, fmt.Errorf("%w: %s", e, p.stderrText()))
	}
	return err
}

// program is the file to push.
type program struct {
	path string
	sum  string // SHA-256
	size int64
}

// findProgram returns the program for a system and architecture (Go's names): this one, or the file skerry-OS-ARCH next to
// it.
func findProgram(exe, system, arch string) (program, error) {
	p := program{path: exe}
	if system != runtime.GOOS || arch != runtime.GOARCH {
		p.path = filepath.Join(filepath.Dir(exe), "skerry-"+system+"-"+arch)
	}
	st, err := os.Stat(p.path)
	if err != nil {
		err = fmt.Errorf("%w: it is %s on %s: %w", ErrNoProgram, system, arch, err)
		return p, advice.With(err, "build it: GOOS=%s GOARCH=%s go build -trimpath -o %s ./cmd/skerry", system, arch, p.path)
	}
	p.size = st.Size()
	if p.sum, err = files.SHA256(p.path); err != nil {
		err = fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	return p, err
}

// architectures maps the names of uname to Go's.
var architectures = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "i686": "386",
	"ppc64le": "ppc64le", "riscv64": "riscv64", "s390x": "s390x",
}

// pushProgram starts the program on the machine and first copies it if it is missing or different.
func (p *agentProcess) pushProgram(ctx context.Context, o Options) error {
	is, err := p.readUntil("skerry carrier ")
	if err != nil {
		return err
	}
	system, machine, _ := strings.Cut(is, " ")
	arch := architectures[machine]
	if system != "Linux" || arch == "" {
		return fmt.Errorf("%w: it is %s on %s", ErrNoProgram, system, machine)
	}
	b, err := findProgram(o.Exe, "linux", arch)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.conn, "%s %d\n", b.sum, b.size); err != nil {
		return p.startError(err)
	}
	var sent error
	for {
		line, err := p.conn.ReadLine(maxLineBytes)
		switch {
		case err != nil:
			return p.startError(errors.Join(err, sent))
		case line == "run":
			return nil
		case line == "failed":
			return fmt.Errorf("%w: %s", ErrNoProgram, p.stderrText())
		case line == "send":
			o.Log.DebugContext(ctx, "giving a machine its program", "program", b.path, "bytes", b.size)
			sent = p.sendFile(b) // if that fails, the machine reports the reason
		}
	}
}

func (p *agentProcess) sendFile(b program) error {
	f, err := os.Open(b.path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	defer f.Close()
	_, err = io.Copy(p.conn, f)
	return err
}
