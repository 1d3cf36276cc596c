// Package loophost makes nodes for tests that need no lab: all of 127.0.0.0/8 is this
// machine, so that every node of every test has an address of its own on loopback.
package loophost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/internal/host"
)

// node is a node on loopback.
type node struct {
	t               testing.TB
	name, addr, dir string
}

// nets counts the sets of nodes of this process.
var nets atomic.Uint32

// New makes n nodes, n1 to nN, each at a site of its own, s1 to sN. What they start
// that still runs when the test ends is killed then.
func New(t testing.TB, n int) []host.Host {
	t.Helper()
	net := nets.Add(1)
	pid := os.Getpid()
	hosts := make([]host.Host, n)
	for i := range hosts {
		hosts[i] = &node{
			t:    t,
			name: fmt.Sprintf("n%d", i+1),
			addr: fmt.Sprintf("127.%d.%d.%d", 1+(pid>>3)%126, (pid&7)<<5|int(net&31), i+1),
			dir:  t.TempDir(),
		}
		// Servers that refuse root run as another user, who must get there.
		if err := os.Chmod(filepath.Dir(hosts[i].Dir()), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

func (h *node) Name() string               { return h.name }
func (h *node) Site() string               { return "s" + h.name[1:] }
func (h *node) Addr() string               { return h.addr }
func (h *node) Dir() string                { return h.dir }
func (h *node) Netns() string              { return "/proc/self/ns/net" }
func (h *node) Do(f func() error) error    { return f() }
func (h *node) Usage() (host.Usage, error) { return host.Usage{}, nil }

// Start runs a program.
func (h *node) Start(_ context.Context, c host.Command) (host.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = cmp.Or(c.Dir, h.dir)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C"}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// A group of its own: what a start script leaves behind dies with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.UID != 0 || c.GID != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
	p := &process{cmd: cmd, log: c.Log, done: make(chan struct{})}
	var log *os.File
	if c.Log != "" {
		var err error
		if log, err = os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
		defer log.Close()
		if cmd.Stdout == nil {
			cmd.Stdout = log
		}
		if cmd.Stderr == nil {
			cmd.Stderr = log
		}
	}
	// Pdeathsig is of the thread that starts the program: one that stays as long as the
	// program does, so that this ends when the tests are killed, and not before.
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
		return nil, err
	}
	h.t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			h.t.Errorf("ending %s on %s: %v", c.Name, h.name, err)
		}
	})
	return p, nil
}

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

func (p *process) Stop(_ context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		return p.Kill()
	}
}

func (p *process) Kill() error {
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.done
	return nil
}

func (p *process) Tail(n int) string {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var (
	_ host.Host    = (*node)(nil)
	_ host.Process = (*process)(nil)
)
