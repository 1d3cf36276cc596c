// Package loopback is nodes without a lab: all of 127.0.0.0/8 is this machine, so that every
// node has an address of its own there, and the ports that it would have anywhere. Its
// processes share all else with this one, and die with it, however it ends.
package loopback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/process"
)

// leftover bounds how long pipes are read that a process's children keep open after its end.
const leftover = time.Second

// node is a node on loopback.
type node struct{ name, site, addr, dir string }

var _ host.Inside = (*node)(nil)

// New is a node that has the address; its directory is made where it is not there.
func New(name, site, addr, dir string) (host.Inside, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	return &node{name, site, addr, dir}, nil
}

func (n *node) Name() string               { return n.name }
func (n *node) Site() string               { return n.site }
func (n *node) Addr() string               { return n.addr }
func (n *node) Dir() string                { return n.dir }
func (n *node) Netns() string              { return "/proc/self/ns/net" }
func (n *node) Do(f func() error) error    { return f() }
func (n *node) Files() files.System        { return files.Local{} }
func (n *node) Usage() (host.Usage, error) { return host.Usage{}, errors.ErrUnsupported }
func (n *node) Ahead() time.Duration       { return 0 }

// Dial connects from this machine.
func (n *node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return host.DialInside(ctx, n.Do, network, addr)
}

// Start runs a program in a process group of its own, which the terminal's Ctrl-C does not
// reach: its owner ends it in its turn.
func (n *node) Start(_ context.Context, c host.Command) (host.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.WaitDelay = cmp.Or(c.Dir, n.dir), leftover
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "LANG=C.UTF-8"}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if (c.UID != 0 || c.GID != 0) && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
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
	p := process.New(cmd, c.Name+" on "+n.name, c.Log)
	// The kernel sends Pdeathsig when the thread that started the program ends: one that
	// stays as long as the program does.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.Reap(nil)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return p, nil
}
