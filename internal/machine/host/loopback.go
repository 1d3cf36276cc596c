package host

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/process"
)

// loopbackNode is a node in this process's own network.
type loopbackNode struct {
	name, site, addr, dir string

	mu      sync.Mutex
	running map[*process.Process]struct{}
	ended   Usage // of processes that have ended
}

var _ NamespaceHost = (*loopbackNode)(nil)

// NewLoopback returns a node without a lab. All of 127.0.0.0/8 is this machine, so each node has its own
// address and can use any port. The node shares everything else with this process. Its programs die with
// this process. NewLoopback makes the directory if it is missing.
func NewLoopback(name, site, addr, dir string) (NamespaceHost, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of %s: %w", name, err)
	}
	return &loopbackNode{name: name, site: site, addr: addr, dir: dir, running: map[*process.Process]struct{}{}}, nil
}

func (n *loopbackNode) Name() string               { return n.name }
func (n *loopbackNode) Site() string               { return n.site }
func (n *loopbackNode) Addr() string               { return n.addr }
func (n *loopbackNode) Dir() string                { return n.dir }
func (n *loopbackNode) Netns() string              { return "/proc/self/ns/net" }
func (n *loopbackNode) Do(f func() error) error    { return f() }
func (n *loopbackNode) Files() files.System        { return files.Local{} }
func (n *loopbackNode) ClockOffset() time.Duration { return 0 }

func (n *loopbackNode) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, n.Do, network, addr)
}

// Usage adds up the node's processes and their children, by /proc.
func (n *loopbackNode) Usage() (Usage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.ended
	for p := range n.running {
		sum.add(familyUsage(p.PID()))
	}
	return sum, nil
}

// retire keeps what a process used that has ended and has not been waited for.
func (n *loopbackNode) retire(p *process.Process) {
	used := familyUsage(p.PID())
	used.Memory = 0
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended.add(used)
	delete(n.running, p)
}

// Start runs a program in a separate process group, because the terminal's Ctrl-C must not end it before its owner does.
func (n *loopbackNode) Start(_ context.Context, c Command) (Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = cmp.Or(c.Dir, n.dir)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "LANG=C.UTF-8"}, c.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if (c.UID != 0 || c.GID != 0) && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
	log, err := connectStreams(cmd, c)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	defer log.Close()
	p := process.New(cmd, c.Name+" on "+n.name, c.Log)
	// The kernel sends Pdeathsig when the thread that started the program ends, so this thread stays as long as the
	// program.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			n.mu.Lock()
			n.running[p] = struct{}{}
			n.mu.Unlock()
		}
		started <- err
		if err == nil {
			p.Reap(func() { n.retire(p) })
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return p, nil
}
