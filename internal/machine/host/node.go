package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/files"
	"skerry/internal/machine/process"
)

// ErrClosed is returned by Start while the node's lab ends.
var ErrClosed = errors.New("the node is going down")

// Spec describes a node. Its namespace and directory must exist.
type Spec struct {
	Name  string
	Site  string
	Addr  string
	Dir   string
	Netns string
	// Hosts is the file that the node's processes see as /etc/hosts; "" for the machine's.
	Hosts string
	// Resolver is the file that they see as /etc/resolv.conf once it exists; "" for the machine's.
	Resolver string
	// Hide is a directory of mounts to hide from the node's processes, so that they do not keep other nodes' namespaces
	// alive; "" for none.
	Hide string
	// Tag is the value of LabVariable in the processes' environment.
	Tag string
	// CPU is a quota in cores and Memory a limit in bytes, 0 for none.
	CPU    float64
	Memory int64
	// Weight is the node's relative CPU share under contention; 0 means 1.
	Weight int
	// Disk limits throughput on the disk of Dir.
	Disk cgroup.DiskLimit
	// Group is the node's control group, made when its first process starts; nil without control groups.
	Group *cgroup.Group
	// Nested is set if this process is root only in a user namespace, so that other users need nested ones.
	Nested bool
	// Whole is set if the node is the machine itself: Netns and disk are the machine's.
	Whole bool
	// Began, if set, is called for every process before its first instruction. If it fails, the process is killed.
	Began func(p procfs.Process, name string) error
}

// LabVariable is the environment variable that names the lab of a process.
const LabVariable = "SKERRY_LAB"

// Node implements Host on this machine.
type Node struct {
	spec Spec

	group struct {
		sync.Mutex
		made bool
	}

	mu      sync.Mutex
	closed  bool
	running map[*process.Process]struct{}
	ended   Usage // of processes that have ended, where there is no control group
	disk    int64 // bytes of the one that MountDisk mounted, 0 for none
	owned   sync.WaitGroup

	delays struct {
		sync.Mutex
		procfs.RunDelays
	}
}

var _ NamespaceHost = (*Node)(nil)

func NewNode(spec Spec) *Node { return &Node{spec: spec, running: map[*process.Process]struct{}{}} }

func (n *Node) Name() string  { return n.spec.Name }
func (n *Node) Site() string  { return n.spec.Site }
func (n *Node) Addr() string  { return n.spec.Addr }
func (n *Node) Dir() string   { return n.spec.Dir }
func (n *Node) Netns() string { return n.spec.Netns }

// Do calls f on the calling thread in the node's network namespace.
func (n *Node) Do(f func() error) error { return netns.Do(n.spec.Netns, f) }

func (n *Node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, n.Do, network, addr)
}

func (n *Node) Files() files.System { return files.Local{} }

// Close kills all processes that Start started and waits for their goroutines. No process starts afterwards.
func (n *Node) Close() error {
	running := n.shut()
	var errs []error
	for _, p := range running {
		_ = p.SendKill() // it may have ended
	}
	for _, p := range running {
		errs = append(errs, p.Kill())
	}
	n.owned.Wait()
	return errors.Join(errs...)
}

// shut prevents new processes and a new control group, which would be left behind. It returns the running processes.
func (n *Node) shut() (running []*process.Process) {
	n.group.Lock()
	defer n.group.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for p := range n.running {
		running = append(running, p)
	}
	return running
}

func (n *Node) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// controlGroup makes the node's control group at first use: a group costs 0.1 MB of kernel memory, and many nodes never run
// a process.
func (n *Node) controlGroup() (*cgroup.Group, error) {
	n.group.Lock()
	defer n.group.Unlock()
	g := n.spec.Group
	if g == nil || n.group.made {
		return g, nil
	}
	if n.isClosed() {
		return nil, ErrClosed // a group that is made now would be left
	}
	if err := g.Create(); err != nil {
		return nil, err
	}
	// A missing controller was reported when the lab was made.
	if n.spec.CPU > 0 {
		if err := g.LimitCPU(n.spec.CPU); err != nil && !errors.Is(err, cgroup.ErrNoController) {
			return nil, err
		}
	}
	if n.spec.Weight > 0 {
		if err := g.SetCPUWeight(n.spec.Weight); err != nil && !errors.Is(err, cgroup.ErrNoController) {
			return nil, err
		}
	}
	if n.spec.Memory > 0 {
		if err := g.LimitMemory(n.spec.Memory); err != nil && !errors.Is(err, cgroup.ErrNoController) {
			return nil, err
		}
	}
	if n.spec.Disk != (cgroup.DiskLimit{}) {
		device, err := cgroup.FindDisk(n.spec.Dir)
		if err == nil {
			err = g.LimitDisk(device, n.spec.Disk)
		}
		if err != nil && !errors.Is(err, cgroup.ErrNoController) {
			return nil, err
		}
	}
	n.group.made = true
	return g, nil
}

// environment returns a process's environment.
func (n *Node) environment(c Command) []string {
	return append([]string{
		"PATH=" + SearchPath,
		"HOME=" + n.spec.Dir,
		"LANG=C.UTF-8",
		LabVariable + "=" + n.spec.Tag,
		"SKERRY_NODE=" + n.spec.Name,
	}, c.Env...)
}

// connectStreams sets the streams of a command's process. Output without a stream goes to the command's log, if any; the
// caller closes the log after the start.
func connectStreams(cmd *exec.Cmd, c Command) (log io.Closer, err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Stdin, c.Stdout, c.Stderr, outputDelay
	if c.Log == "" {
		return io.NopCloser(nil), nil
	}
	file, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if cmd.Stdout == nil {
		cmd.Stdout = file
	}
	if cmd.Stderr == nil {
		cmd.Stderr = file
	}
	return file, nil
}

// Published is a host whose servers are reached at another address or port than they listen on.
type Published interface {
	Host
	// Listen is the IPv4 address that servers bind to. Clients use Addr.
	Listen() string
	// Port maps a port at Listen to the port at Addr.
	Port(port int) int
}

// Listen returns the address that servers on a host bind to.
func Listen(h Host) string {
	if p, ok := h.(Published); ok {
		return p.Listen()
	}
	return h.Addr()
}

// Port returns the port at a host's Addr for a server's port.
func Port(h Host, port int) int {
	if p, ok := h.(Published); ok {
		return p.Port(port)
	}
	return port
}

// Container is a part of a node: processes with a network namespace of their own, reachable as a service of the lab.
// Directory, control group and journal are the node's.
type Container struct {
	*Node
	space Space
}

// Space is a container's position in the network.
type Space struct {
	Netns string // path of its network namespace
	// Listen is the address inside the container, Addr the address that clients use.
	Listen, Addr string
	// Ports maps ports at Listen to ports at Addr; other ports are identical.
	Ports map[int]int
}

var (
	_ Published     = (*Container)(nil)
	_ NamespaceHost = (*Container)(nil)
)

// Container returns a container on the node. Its namespace must exist.
func (n *Node) Container(s Space) *Container { return &Container{Node: n, space: s} }

// Addr returns the address that clients use.
func (c *Container) Addr() string { return c.space.Addr }

func (c *Container) Netns() string { return c.space.Netns }

func (c *Container) Listen() string { return c.space.Listen }

func (c *Container) Port(port int) int {
	if p, ok := c.space.Ports[port]; ok {
		return p
	}
	return port
}

// Start runs a program in the container.
func (c *Container) Start(ctx context.Context, cmd Command) (Process, error) {
	return c.Node.startIn(ctx, cmd, c.space.Netns)
}

// Exec replaces the calling process by a program in the container, as Node.Exec does.
func (c *Container) Exec(cmd Command) error { return c.Node.execIn(cmd, c.space.Netns) }

// Do calls f on the calling thread in the container's network namespace.
func (c *Container) Do(f func() error) error { return netns.Do(c.space.Netns, f) }

func (c *Container) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, c.Do, network, addr)
}
