package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/files"
	"skerry/internal/machine/process"
)

// ErrClosed is returned by Start once the node's lab is going down.
var ErrClosed = errors.New("the node is going down")

// Spec says what a node is made of. Its namespace and directory are there already.
type Spec struct {
	Name  string
	Site  string
	Addr  string
	Dir   string
	Netns string
	// Hosts is the file that the node's processes see as /etc/hosts; "" leaves them
	// the machine's.
	Hosts string
	// Resolver is the file that they see as /etc/resolv.conf from when on it is there; ""
	// leaves them the machine's.
	Resolver string
	// Hide is a directory of mounts hidden from the node's processes, so
	// that they do not hold other nodes' namespaces; "" for none.
	Hide string
	// Tag is the value of LabVariable in the environment of the node's processes.
	Tag string
	// CPU is a quota in cores and Memory a limit in bytes, 0 for none.
	CPU    float64
	Memory int64
	// Weight is how many times another node's processor time it gets while there is too
	// little for all, 0 for as much.
	Weight int
	// Disk bounds what it does on the disk that Dir is on.
	Disk cgroup.DiskLimit
	// Group is the node's control group, made when its first process starts; nil where
	// the machine has none to give.
	Group *cgroup.Group
	// Nested says that this process is root of a user namespace of its own only, so
	// that other users have to be made up in further ones.
	Nested bool
	// Whole says that the node is the machine itself: Netns is the machine's own, and so is its disk.
	Whole bool
	// Began, when set, is told of every process before its first instruction. When
	// it fails the process is killed.
	Began func(p procfs.Process, name string) error
}

// LabVariable is the environment variable that names the lab of a process.
const LabVariable = "SKERRY_LAB"

// Node is a Host on this machine.
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

// NewNode returns the node that spec describes.
func NewNode(spec Spec) *Node { return &Node{spec: spec, running: map[*process.Process]struct{}{}} }

// Name is the node's name.
func (n *Node) Name() string { return n.spec.Name }

// Site is the name of the site it stands at.
func (n *Node) Site() string { return n.spec.Site }

// Addr is the node's IPv4 address.
func (n *Node) Addr() string { return n.spec.Addr }

// Dir is the node's directory.
func (n *Node) Dir() string { return n.spec.Dir }

// Netns is the path of the node's network namespace.
func (n *Node) Netns() string { return n.spec.Netns }

// Do calls f with the calling thread in the node's network namespace.
func (n *Node) Do(f func() error) error { return netns.Do(n.spec.Netns, f) }

// Dial connects from the node.
func (n *Node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, n.Do, network, addr)
}

// Files are this machine's.
func (n *Node) Files() files.System { return files.Local{} }

// Close kills every process that Start started and is still running, and waits for
// the goroutines that look after them. No process starts after it.
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

// shut has no process start from here on, and no control group be made: it would be left. It
// returns the processes that run.
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

// controlGroup makes the node's control group, with its limits, when it is first
// needed: a group costs 0.1 MB of kernel memory, and many nodes never run anything.
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
	// A limit whose controller is missing was reported when the lab came up.
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

// environment is what a process starts with.
func (n *Node) environment(c Command) []string {
	return append([]string{
		"PATH=" + SearchPath,
		"HOME=" + n.spec.Dir,
		"LANG=C.UTF-8",
		LabVariable + "=" + n.spec.Tag,
		"SKERRY_NODE=" + n.spec.Name,
	}, c.Env...)
}

func (n *Node) dir(c Command) string {
	if c.Dir != "" {
		return c.Dir
	}
	return n.spec.Dir
}

// openLog opens the log of a command, nil when it has none.
func openLog(c Command) (*os.File, error) {
	if c.Log == "" {
		return nil, nil
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return log, nil
}
