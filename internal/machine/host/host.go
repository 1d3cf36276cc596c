// Package host runs the processes of a lab's nodes. A node on one machine is a network namespace, a control group and a
// directory; software on it sees a computer of its own.
//
// Host is the interface of a node, local or remote. No threads, descriptors or local paths cross it, so that an agent on
// another machine can serve it. Node implements it on this machine.
package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine/files"
)

// Host is a node of a running lab. Paths are those of its machine. Equal Hosts are the same node: dynamic types are
// comparable, like pointers.
type Host interface {
	Name() string
	Site() string
	// Addr is the node's IPv4 address for other nodes.
	Addr() string
	// Dir is the node's own directory. It is removed with the lab.
	Dir() string
	// Start runs a program on the node: in its namespace, its control group and, by default, its directory. ctx limits only
	// the start.
	Start(ctx context.Context, c Command) (Process, error)
	// Dial connects from the node to an IP address and port, or ("unix") to a socket's path. It does not resolve names
	// (ErrName). ctx limits only the connecting. Errors wrap the system's error, such as syscall.ECONNREFUSED.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
	// Files is the machine's file system; the node's own files are below Dir.
	Files() files.System
	// Usage returns the resources that the node's processes used and waited for since the node was made.
	Usage() (Usage, error)
	// ClockOffset is the lead of the machine's clock over this process's at the last measurement, 0 on this machine.
	ClockOffset() time.Duration
}

// ExitCode is the non-zero exit status of a program on another machine.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Command is a program to run on a node.
type Command struct {
	// Name labels the process in journals, logs and messages ("redis", "load").
	Name string
	Path string
	Args []string // without the program itself
	Env  []string // added to a minimal environment: PATH, HOME, LANG
	Dir  string   // default: the node's directory
	// Log, if set, is a file of the node to which stdout and stderr are appended if Stdout and Stderr are nil.
	Log    string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// UID and GID, if not 0, are the user to run as (some databases refuse root), if the node's machine has the right to
	// run programs as other users.
	UID, GID uint32
}

// SearchPath is the default PATH of programs on a node.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

type Process interface {
	// PID is the process's ID on the node's machine.
	PID() int
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Err is nil while the process runs and after exit status 0.
	Err() error
	// Stop sends SIGTERM and, after grace, SIGKILL. It returns when the process has ended.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill sends SIGKILL and waits.
	Kill() error
	// KillFamily kills the process and its current children, even in other sessions, and waits for all.
	KillFamily() error
	// Signal sends a signal and does not wait. An ended process is not an error.
	Signal(s syscall.Signal) error
	// Tail returns the last n lines of its Log.
	Tail(n int) string
}

// Usage is a node's resource usage since it was made.
type Usage struct {
	CPU time.Duration `json:"cpu_ns"`
	// User and System are the parts of CPU, 0 if the machine does not distinguish them.
	User       time.Duration `json:"user_ns"`
	System     time.Duration `json:"system_ns"`
	Throttled  time.Duration `json:"throttled_ns"` // time its quota held it back
	Memory     int64         `json:"memory_bytes"` // resident now, page cache left out
	ReadBytes  int64         `json:"read_bytes"`
	WroteBytes int64         `json:"wrote_bytes"`
	// Grouped is set if CPU comes from a control group, which counts exactly the node's processes.
	Grouped bool  `json:"grouped,omitempty"`
	Waits   Waits `json:"waits,omitzero"`
}

// Waits are the waiting times of a node's threads since it was made.
type Waits struct {
	// Processor is the total time that runnable threads waited for a processor.
	Processor time.Duration `json:"processor_ns"`
	// Disk is the time in which at least one thread waited for a disk.
	Disk time.Duration `json:"disk_ns"`
	// Known is false if the kernel or a missing control group prevents the measurement.
	ProcessorKnown bool `json:"processor_known,omitempty"`
	DiskKnown      bool `json:"disk_known,omitempty"`
}

// ErrName is returned by Host.Dial for an address that needs name resolution: the caller's resolver does not know the
// node's names.
var ErrName = errors.New("the address is a name")

func Dialer(h Host, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return h.Dial(ctx, network, addr)
	}
}

// CheckAccepts returns nil if an IPv4 address and port accepts connections from a host within a time.
func CheckAccepts(ctx context.Context, h Host, addr string, within time.Duration) error {
	conn, err := Dialer(h, within)(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// NamespaceHost is a host whose network namespace is on this machine, for work that needs listening sockets, routes or
// devices. Clients of servers use Dial.
type NamespaceHost interface {
	Host
	// Netns is the path of its network namespace.
	Netns() string
	// Do calls f on the calling thread inside the node's network namespace. Sockets that f opens stay there; goroutines
	// that f starts do not run there.
	Do(f func() error) error
}

func DialInside(ctx context.Context, do func(f func() error) error, network, addr string) (conn net.Conn, err error) {
	if !strings.HasPrefix(network, "unix") {
		if _, err := netip.ParseAddrPort(addr); err != nil {
			return nil, fmt.Errorf("connect to %s: %w: %w", addr, ErrName, err)
		}
	}
	err = do(func() error {
		// An address without a name is dialled by the calling goroutine.
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Controls is a host that supports the events of experiments, on any machine. Node documents the methods.
type Controls interface {
	Freeze(ctx context.Context) error
	Thaw() error
	MountDisk(bytes int64) error
	FillDisk() error
	FreeDisk() error
	LimitDisk(l cgroup.DiskLimit) error
	LimitCPU(cores float64) error
	Used() (used, throttled time.Duration, err error)
}

var _ Controls = (*Node)(nil)

func (n *Node) ClockOffset() time.Duration { return 0 }
