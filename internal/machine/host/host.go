// Package host runs the processes of a lab's nodes. A node on one machine is a
// network namespace, a control group and a directory; to the software on it that
// is a computer of its own.
//
// Host is what a node can be asked by who does not know where it is. Nothing in it is a
// thread, a descriptor or a path of the asking side, so that an agent on another machine can
// answer. Node is the one of this machine.
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

// Host is one node of a lab that is up. Paths are those of its machine. Two that are equal are
// the same node: their dynamic type is comparable, as pointers are.
type Host interface {
	// Name is the node's name, unique in its lab.
	Name() string
	// Site is the name of the site it stands at.
	Site() string
	// Addr is the IPv4 address other nodes reach this one by.
	Addr() string
	// Dir is the node's own directory; it goes when the lab goes.
	Dir() string
	// Start runs a program on the node: in its namespace, its control group and,
	// unless the command says otherwise, its directory. The process outlives ctx;
	// ctx bounds the start alone.
	Start(ctx context.Context, c Command) (Process, error)
	// Dial connects from the node, as net.Dialer.DialContext does: to an IP address and port, or
	// ("unix") to a socket's path. Names are not looked up: that is ErrName. ctx bounds the
	// connecting alone. An error wraps what the system there said (syscall.ECONNREFUSED).
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
	// Files are those of its machine; the node's own are below Dir.
	Files() files.System
	// Usage reads what the node's processes have used since it came up, and what they waited for.
	Usage() (Usage, error)
	// Ahead is how far the clock of its machine was ahead of this process's when last measured, 0 on the same machine.
	ClockOffset() time.Duration
}

// ExitCode is how a program ended that did not end well, of hosts on other machines.
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
	// Log, when set, is a file of the node that stdout and stderr are appended to where
	// Stdout and Stderr are nil.
	Log    string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// UID and GID to run as when not 0 (some databases refuse root), where the node's machine
	// has the right to run programs as others; else they run as who looks after it.
	UID, GID uint32
}

// SearchPath is where programs on a node look for others when their command says nothing else.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Process is a program running on a node.
type Process interface {
	// PID is its ID on the node's machine, for people to read.
	PID() int
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Err is nil while it runs and when it ended with 0, else how it ended.
	Err() error
	// Stop sends SIGTERM, waits, and after grace sends SIGKILL. It returns when
	// the process has ended.
	Stop(ctx context.Context, grace time.Duration) error
	// Kill sends SIGKILL and waits.
	Kill() error
	// KillFamily is Kill, and kills the processes that it has started and that still are its
	// children, though each may lead a session of its own; it waits for their end too.
	KillFamily() error
	// Signal sends a signal and does not wait. That the process has ended is no error.
	Signal(s syscall.Signal) error
	// Tail returns the last n lines of its Log.
	Tail(n int) string
}

// Usage is what a node has used since it came up.
type Usage struct {
	CPU time.Duration `json:"cpu_ns"`
	// User and System are its parts, 0 where the machine does not tell them apart.
	User       time.Duration `json:"user_ns"`
	System     time.Duration `json:"system_ns"`
	Throttled  time.Duration `json:"throttled_ns"` // time its quota held it back
	Memory     int64         `json:"memory_bytes"` // resident now, page cache left out
	ReadBytes  int64         `json:"read_bytes"`
	WroteBytes int64         `json:"wrote_bytes"`
	// Grouped says that CPU is what a control group counted: all of the node's processes, and no others.
	Grouped bool  `json:"grouped,omitempty"`
	Waits   Waits `json:"waits,omitzero"`
}

// Waits are the times that a node's threads waited since it came up.
type Waits struct {
	// Processor adds up the time that each thread was ready to run and waited for a processor.
	Processor time.Duration `json:"processor_ns"`
	// Disk is the time in which at least one thread waited for a disk.
	Disk time.Duration `json:"disk_ns"`
	// The kernel or the missing control group may keep either from being counted.
	ProcessorKnown bool `json:"processor_known,omitempty"`
	DiskKnown      bool `json:"disk_known,omitempty"`
}

// ErrName is returned by Host.Dial for an address that would have to be looked up: only on
// the asking side could it be, where a node's names mean nothing.
var ErrName = errors.New("the address is a name")

// Dialer is a host's Dial that gives up after so long.
func Dialer(h Host, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return h.Dial(ctx, network, addr)
	}
}

// CheckAccepts returns nil when something accepts connections from a host, at an IPv4 address and
// port, within a time.
func CheckAccepts(ctx context.Context, h Host, addr string, within time.Duration) error {
	conn, err := Dialer(h, within)(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// NamespaceHost is a host whose network is one of this machine: for the machine's own work there,
// with sockets that listen, routes and devices. What only asks servers something has Dial.
type NamespaceHost interface {
	Host
	// Netns is the path of its network namespace.
	Netns() string
	// Do calls f with the calling thread inside the node's network namespace.
	// Sockets that f opens stay there; goroutines that f starts do not run there.
	Do(f func() error) error
}

// DialInside is Host.Dial of a host that do brings the calling thread into the network of.
func DialInside(ctx context.Context, do func(f func() error) error, network, addr string) (conn net.Conn, err error) {
	if !strings.HasPrefix(network, "unix") {
		if _, err := netip.ParseAddrPort(addr); err != nil {
			return nil, fmt.Errorf("connect to %s: %w: %w", addr, ErrName, err)
		}
	}
	err = do(func() error {
		// An address without a name is dialled by the goroutine that asks.
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Controls is a host that what happens in an experiment can be done to. Nodes have it, wherever
// their machine is; Node says what each does.
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

// ClockOffset implements Host: a node of this machine has its clock.
func (n *Node) ClockOffset() time.Duration { return 0 }
