// Package device creates the ends of links in network namespaces: devices whose packets this process reads and
// writes through a file descriptor, each with a virtio_net_hdr.
//
// A TUN device needs /dev/net/tun, which may be closed to users. A veth pair needs no file: one end is in the node's
// namespace and the other in a private namespace, read through a packet socket. Its frames have a link header.
package device

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/link"
)

type Kind string

const (
	TUN  Kind = "tun"
	Veth Kind = "veth"
)

const (
	defaultMTU = 1500
	// queueLength bounds, in packets, what the kernel queues for the emulator: 7 ms of the fastest flood of
	// small packets, at 8 bytes each.
	queueLength = 2000
)

// Request describes one device to create, up and without addresses.
type Request struct {
	link.End
	MTU int // 0 means 1500
	// NoLinkHeader requests packets without a link header, as packets to other machines have none.
	NoLinkHeader bool
}

func (w Request) mtu() int {
	if w.MTU == 0 {
		return defaultMTU
	}
	return w.MTU
}

// Port is the emulator's side of a device.
type Port struct {
	FD int
	// LinkHeader is the length in bytes of the header before IP.
	LinkHeader int
	// MAC is the device's address, required in frames written to FD.
	MAC [6]byte

	// Remote means that FD is a socket to another machine, with packets no longer than the link's MTU.
	Remote bool

	index int // of the emulator's end of a veth pair, otherwise 0
}

// Maker creates devices of one kind.
type Maker struct {
	kind Kind
	own  int // namespace of the emulator's veth ends
}

func NewMaker(kind Kind) (*Maker, error) {
	m := &Maker{kind: kind, own: -1}
	if kind != Veth {
		return m, nil
	}
	return m, onThread(func() error { return m.createNamespace() })
}

// Make creates all devices or none. The ports are in the order of the requests.
func (m *Maker) Make(ctx context.Context, wants []Request) ([]*Port, error) {
	ports := make([]*Port, 0, len(wants))
	err := onThread(func() error {
		for _, w := range wants {
			if err := ctx.Err(); err != nil {
				return err
			}
			p, err := m.makeDevice(w)
			if err != nil {
				return fmt.Errorf("device %s in %s: %w", w.Device, w.Netns, err)
			}
			ports = append(ports, p)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, m.Remove(ports))
	}
	return ports, nil
}

func (m *Maker) makeDevice(w Request) (*Port, error) {
	ns, err := openNetns(w.Netns)
	if err != nil {
		return nil, err
	}
	defer unix.Close(ns)
	if w.Path != nil {
		return openPath(w, ns)
	}
	if m.kind == Veth && !w.NoLinkHeader {
		return m.makeVeth(w, ns)
	}
	return makeTUN(w, ns)
}

func (m *Maker) Remove(ports []*Port) error {
	err := closeAll(ports)
	if m.kind == Veth && len(ports) > 0 {
		err = errors.Join(err, onThread(func() error { return m.removeVeths(ports) }))
	}
	return err
}

// Close releases the maker's namespace. Devices that were not removed may be removed with it.
func (m *Maker) Close() error {
	if m.own < 0 {
		return nil
	}
	return unix.Close(m.own)
}

// onThread runs f on a new thread with normal priority, which may change its namespace and ends with f.
func onThread(f func() error) error {
	return netns.OnNewThread(func() error {
		// Fails only if the priority was not raised.
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
		return f()
	})
}

func openNetns(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open namespace: %w", err)
	}
	return fd, nil
}

func enterNetns(ns int) error {
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace: %w", err)
	}
	return nil
}

// pathBuffer is the size of each socket buffer to another machine, in bytes: 30 ms of a gigabit.
const pathBuffer = 4 << 20

// openPath creates the UDP socket of a path to another machine in the namespace ns, where the calling thread
// stays. A packet travels with its virtio_net_hdr, which describes its incomplete checksum. Packets are never fragmented.
func openPath(w Request, ns int) (*Port, error) {
	if err := enterNetns(ns); err != nil {
		return nil, err
	}
	local, family := sockaddr(w.Path.Local)
	remote, _ := sockaddr(w.Path.Remote)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open path socket: %w", err)
	}
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
	}
	if err == nil {
		err = errors.Join(setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF), setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF))
	}
	if err == nil {
		// UDP_GRO reads datagrams together since Linux 5.0. Older systems return single packets.
		_ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1)
	}
	if err = errors.Join(err, unix.Bind(fd, local)); err == nil {
		err = unix.Connect(fd, remote)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open path from %v to %v: %w", w.Path.Local, w.Path.Remote, err), unix.Close(fd))
	}
	return &Port{FD: fd, Remote: true}, nil
}

// setBuffer sets a socket buffer, limited by the system's maximum if forcing it is refused.
func setBuffer(fd, forced, asked int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, pathBuffer) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, asked, pathBuffer)
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, int) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}, unix.AF_INET6
}
