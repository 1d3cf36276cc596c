package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/process"
)

const (
	// descriptors is the limit of open files, if the machine permits it. Databases need many (Cassandra 100,000), but
	// programs that close all descriptors take long with more.
	descriptors = 1 << 17
	// outputDelay bounds reading from pipes that children keep open after a process's end.
	outputDelay = time.Second
)

func (n *Node) Start(ctx context.Context, c Command) (Process, error) {
	return n.startIn(ctx, c, n.spec.Netns)
}

func (n *Node) startIn(ctx context.Context, c Command, netns string) (Process, error) {
	p, err := n.start(ctx, c, netns)
	if err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", c.Name, n.spec.Name, err)
	}
	return p, nil
}

func (n *Node) start(ctx context.Context, c Command, space string) (*process.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	group, err := n.controlGroup()
	if err != nil {
		return nil, err
	}
	if err := n.admit(); err != nil {
		return nil, err
	}
	p, err := n.launch(c, group, space)
	if err != nil {
		n.owned.Done()
		return nil, err
	}
	go func() {
		defer n.dismiss(p)
		p.Reap(func() { n.retireProcess(p.PID()) })
	}()
	return p, nil
}

// admit counts a starting process among those that Close waits for.
func (n *Node) admit() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	n.owned.Add(1)
	return nil
}

func (n *Node) dismiss(p *process.Process) {
	n.mu.Lock()
	delete(n.running, p)
	n.mu.Unlock()
	n.owned.Done()
}

func (n *Node) launch(c Command, group *cgroup.Group, space string) (*process.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir = n.environment(c), cmp.Or(c.Dir, n.spec.Dir)
	log, err := connectStreams(cmd, c)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The process stops at its first instruction, so that settle can move it to its control group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Ptrace: true}
	n.become(cmd.SysProcAttr, c)
	if err := raiseDescriptors(); err != nil {
		return nil, err
	}
	p := process.New(cmd, c.Name+" on "+n.spec.Name, c.Log)
	err = netns.OnNewThread(func() error {
		if err := n.enter(space); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := n.settle(p, c.Name, group); err != nil {
			return errors.Join(err, abandon(cmd))
		}
		return nil
	})
	return p, err
}

// become sets the user of a process.
func (n *Node) become(attr *syscall.SysProcAttr, c Command) {
	if c.UID == 0 && c.GID == 0 {
		return
	}
	if !n.spec.Nested {
		attr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
		return
	}
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(c.UID), HostID: 0, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(c.GID), HostID: 0, Size: 1}}
}

// settle finishes the start of a process that is stopped at its first instruction and resumes it. It must run on the thread
// that started the process.
func (n *Node) settle(p *process.Process, name string, group *cgroup.Group) error {
	pid := p.PID()
	if err := awaitStop(pid); err != nil {
		return err
	}
	// If this process is killed now, the process without a journal entry ends too.
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL); err != nil {
		return fmt.Errorf("hold the process: %w", err)
	}
	if group != nil {
		if err := group.Join(pid); err != nil {
			return err
		}
	}
	self, err := procfs.FindProcess(pid)
	if err != nil {
		return err
	}
	if n.spec.Began != nil {
		if err := n.spec.Began(self, name); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if err := unix.PtraceDetach(pid); err != nil {
		return fmt.Errorf("let the process go: %w", err)
	}
	n.running[p] = struct{}{}
	return nil
}

// awaitStop waits until a traced process has stopped.
func awaitStop(pid int) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the process's first instruction: %w", err)
		case status.Stopped():
			return nil
		default:
			return fmt.Errorf("the process ended before its first instruction: %v", status)
		}
	}
}

// raiseDescriptors raises this process's limit of open files for its children. Go raises its own limit but restores the
// original one for children unless the program sets a limit itself.
func raiseDescriptors() error {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil {
		limit.Cur = min(limit.Max, descriptors)
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		return fmt.Errorf("raise the limit of open files: %w", err)
	}
	return nil
}

// abandon ends a process whose start failed. The process may already be reaped.
func abandon(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = cmd.Wait() // killed: the error has no further information
	return nil
}
