package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NS is a network namespace of a test. It has no name and no mount, and disappears when the test or its process ends. Its
// loopback is up. IPv6 is off, so that it carries only packets of the test.
type NS struct {
	file *os.File
	addr string
}

// Namespace creates an empty network namespace; the test needs Root.
func Namespace(t testing.TB) *NS {
	t.Helper()
	file, err := newNamespace()
	if err != nil {
		t.Fatalf("making a network namespace: %v", err)
	}
	t.Cleanup(func() { file.Close() })
	n := &NS{file: file}
	err = n.Do(func() error {
		for _, which := range []string{"all", "default"} {
			name := "/proc/sys/net/ipv6/conf/" + which + "/disable_ipv6"
			if err := os.WriteFile(name, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		t.Fatalf("setting up a network namespace: %v", err)
	}
	return n
}

// newNamespace creates a namespace on a thread that then returns to its original namespace.
func newNamespace() (*os.File, error) {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("unshare: %w", err)
	}
	file, err := os.Open("/proc/thread-self/ns/net")
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked and so ends with its goroutine.
		return nil, fmt.Errorf("returning from the new namespace: %w", back)
	}
	runtime.UnlockOSThread()
	return file, err
}

// Path names the namespace for any process of the same user while the test runs.
func (n *NS) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Do calls f with the calling thread inside the namespace. Sockets that f opens
// stay there; goroutines that f starts do not run there.
func (n *NS) Do(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering namespace %s: %w", n.Path(), err)
	}
	failed := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		// The thread stays locked and so ends with its goroutine.
		return fmt.Errorf("returning from namespace %s: %w", n.Path(), err)
	}
	runtime.UnlockOSThread()
	return failed
}

// Addr returns the last address from Assign, without the prefix length.
func (n *NS) Addr() string { return n.addr }

// Assign gives a device of the namespace an IPv4 address in CIDR form and sets it up.
func (n *NS) Assign(t testing.TB, device, cidr string) {
	t.Helper()
	err := n.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		n.addr = addr.IP.String()
		if err := netlink.AddrAdd(dev, addr); err != nil {
			return err
		}
		return netlink.LinkSetUp(dev)
	})
	if err != nil {
		t.Fatalf("giving %s the address %s: %v", device, cidr, err)
	}
}

// HasDevice reports whether the namespace has a network device of that name.
func (n *NS) HasDevice(t testing.TB, device string) bool {
	t.Helper()
	found := false
	err := n.Do(func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			found = found || l.Attrs().Name == device
		}
		return err
	})
	if err != nil {
		t.Fatalf("listing network devices: %v", err)
	}
	return found
}

// VethPair joins a and b by a plain veth pair with addresses out of 10.255.0.0/30
// and returns the names of its devices.
func VethPair(t testing.TB, a, b *NS) (deviceA, deviceB string) {
	t.Helper()
	deviceA, deviceB = "va", "vb"
	err := a.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: deviceA},
			PeerName:      deviceB,
			PeerNamespace: netlink.NsFd(int(b.file.Fd())),
		})
	})
	if err != nil {
		t.Fatalf("making a veth pair: %v", err)
	}
	a.Assign(t, deviceA, "10.255.0.1/30")
	b.Assign(t, deviceB, "10.255.0.2/30")
	a.awaitUp(t, deviceA)
	b.awaitUp(t, deviceB)
	return deviceA, deviceB
}

// awaitUp waits until a device carries packets. The kernel drops packets until it has processed the change of the
// device's state, which may take a second on a busy machine.
func (n *NS) awaitUp(t testing.TB, device string) {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for {
		var state netlink.LinkOperState
		err := n.Do(func() error {
			l, err := netlink.LinkByName(device)
			if err == nil {
				state = l.Attrs().OperState
			}
			return err
		})
		switch {
		case err != nil:
			t.Fatalf("reading the state of %s: %v", device, err)
		case state == netlink.OperUp:
			return
		case time.Now().After(late):
			t.Fatalf("%s is %v after half a minute", device, state)
		}
		time.Sleep(time.Millisecond)
	}
}

// Address returns a loopback address for a server that the test starts later, maybe repeatedly. The port is free and below
// the range from which the kernel chooses. With a port from that range the following could happen:
//
//  1. A test gets 127.7.7.7:40000 from the kernel and closes the listener, so that its server can use the port.
//  2. Another test listens at 0.0.0.0:0. The kernel chooses the free port 40000.
//  3. The server cannot listen, because the port is in use on all addresses.
func Address(t testing.TB) string {
	t.Helper()
	var err error
	for range 10 {
		var l net.Listener
		l, err = net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.N(250), 1+rand.N(250), 1+rand.N(250), 20000+rand.N(10000)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatalf("finding an address to listen at: %v", err)
	return ""
}
