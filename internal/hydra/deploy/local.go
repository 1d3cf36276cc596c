package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"skerry/internal/host"
)

// local is a node on loopback: all of 127.0.0.0/8 is this machine, so that every node has
// an address of its own and the ports that it would have anywhere. What it starts dies
// with this process, however that ends.
type local struct{ name, site, addr, dir string }

// NewLocal is a node on loopback with a directory of its own below dir.
func NewLocal(name, site, addr, dir string) (host.Host, error) {
	h := &local{name, site, addr, filepath.Join(dir, name)}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	return h, nil
}

func (h *local) Name() string               { return h.name }
func (h *local) Site() string               { return h.site }
func (h *local) Addr() string               { return h.addr }
func (h *local) Dir() string                { return h.dir }
func (h *local) Netns() string              { return "/proc/self/ns/net" }
func (h *local) Do(f func() error) error    { return f() }
func (h *local) Usage() (host.Usage, error) { return host.Usage{}, errors.ErrUnsupported }

// Start runs a program in a process group of its own, which the terminal's Ctrl-C does not
// reach: its owner ends it in its turn.
func (h *local) Start(_ context.Context, c host.Command) (host.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = h.dir
	if c.Dir != "" {
		cmd.Dir = c.Dir
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8"}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.Log != "" {
		log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the log of %s: %w", c.Name, err)
		}
		defer log.Close()
		if cmd.Stdout == nil {
			cmd.Stdout = log
		}
		if cmd.Stderr == nil {
			cmd.Stderr = log
		}
	}
	p := &process{cmd: cmd, log: c.Log, done: make(chan struct{})}
	// The kernel sends Pdeathsig when the thread that started the program ends: one that
	// stays as long as the program does.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return p, nil
}

// process is a program that local.Start started.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error
}

func (p *process) PID() int              { return p.cmd.Process.Pid }
func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending process %d: %w", p.PID(), err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
	case <-ctx.Done():
	}
	return p.Kill()
}

func (p *process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing process %d: %w", p.PID(), err)
	}
	<-p.done
	return nil
}

func (p *process) Tail(n int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var (
	_ host.Host    = (*local)(nil)
	_ host.Process = (*process)(nil)
)
