package netem

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	kernelnetns "skerry/internal/kernel/netns"
	"skerry/internal/link"
)

// namespace is a network namespace with ends of links.
type namespace struct {
	path    string
	users   int // number of link ends
	file    netns.NsHandle
	devices *netlink.Handle
	sockets map[int]*nl.SocketHandle // for messages that netlink.Handle does not support
	packets int                      // packet socket that wakes qdiscs, -1 until it is open
	sysfs   int                      // sysfs of this namespace, -1 if it cannot be mounted
}

// enter opens the namespace at path, or adds a user to it.
func (e *Engine) enter(path string) (*namespace, error) {
	if n := e.spaces[path]; n != nil {
		n.users++
		return n, nil
	}
	n := &namespace{path: path, users: 1, file: netns.None(), packets: -1, sysfs: -1}
	if err := n.open(); err != nil {
		n.close()
		return nil, fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	if err := n.do(n.mountSysfs); err != nil {
		e.log.Warn("packets of a link may overtake each other between processors", "namespace", path, "why", err)
	}
	e.spaces[path] = n
	return n, nil
}

// release removes a user and closes the namespace after the last one.
func (e *Engine) release(n *namespace) {
	if n.users--; n.users == 0 {
		n.close()
		delete(e.spaces, n.path)
	}
}

func (n *namespace) open() (err error) {
	if n.file, err = netns.GetFromPath(n.path); err != nil {
		return err
	}
	if n.devices, err = netlink.NewHandleAt(n.file, unix.NETLINK_ROUTE); err != nil {
		return err
	}
	socket, err := nl.GetNetlinkSocketAt(n.file, netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	n.sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	return n.do(func() (err error) {
		n.packets, err = openPackets()
		return err
	})
}

func (n *namespace) close() {
	for _, s := range n.sockets {
		s.Close()
	}
	if n.devices != nil {
		n.devices.Close()
	}
	if n.file.IsOpen() {
		n.file.Close()
	}
	for _, fd := range []int{n.packets, n.sysfs} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// do calls f with the calling thread inside the namespace.
func (n *namespace) do(f func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err == nil {
		defer home.Close()
		err = netns.Set(n.file)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace %s: %w", n.path, err)
	}
	failed := f()
	if err := netns.Set(home); err != nil {
		// The thread stays locked, so that it ends with its goroutine.
		return fmt.Errorf("return from network namespace %s: %w", n.path, err)
	}
	runtime.UnlockOSThread()
	return failed
}

// mountSysfs opens the namespace's sysfs without attaching it to the file system.
func (n *namespace) mountSysfs() error {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open sysfs: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("configure sysfs: %w", err)
	}
	if n.sysfs, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	return nil
}

// rerouteSockets makes the namespace's connections look up their routes again.
func (n *namespace) rerouteSockets() error {
	return n.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/route/flush", []byte("1"), 0)
	})
}

// ErrUnavailable means that this kernel, or this user, cannot create netem qdiscs.
var ErrUnavailable = errors.New("netem is not available")

// Available tests netem in a new namespace. It returns ErrUnavailable with advice if netem cannot be used.
func Available() error {
	return kernelnetns.OnNewThread(tryNetem)
}

// loopback is the interface index of "lo" in every namespace.
const loopback = 1

func tryNetem() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return advice.With(fmt.Errorf("%w: create network namespace: %w", ErrUnavailable, err),
			"run as root, or inside a user namespace (unshare -Urn)")
	}
	n := &namespace{path: fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid()), packets: -1, sysfs: -1, file: -1}
	defer n.close()
	if err := n.open(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	lo := &device{space: n, index: loopback}
	err := lo.build(tables{}.options(link.Quality{}, 0), newShape(link.Quality{}, defaultMTU))
	switch {
	case errors.Is(err, unix.ENOENT):
		return advice.With(fmt.Errorf("%w: the kernel lacks a qdisc: %w", ErrUnavailable, err),
			"load it with `modprobe -a sch_prio sch_netem sch_hfsc`, or install the kernel modules that have it; the userspace engine does without")
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
