// Package device makes the ends of links in network namespaces: network devices whose
// packets the calling process reads and writes through a file descriptor, with a
// virtio_net_hdr before each.
//
// There are two kinds. A TUN device is the packet's whole way, but /dev/net/tun may be
// closed to users. A veth pair, one end in the node's namespace and the other in one of
// this process's own, read through a packet socket, needs no file; its frames carry a
// link header.
package device

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/link"
)

// Kind of device.
type Kind string

// The kinds of devices.
const (
	TUN  Kind = "tun"
	Veth Kind = "veth"
)

const (
	// defaultMTU is Ethernet's.
	defaultMTU = 1500
	// queueLength bounds, in packets, what the kernel keeps until the emulator reads
	// it: 7 ms of the fastest flood of small packets. It costs 8 bytes each.
	queueLength = 2000
)

// Request asks for one device, up and without addresses.
type Request struct {
	link.End
	MTU int // 0 for 1500
	// Bare asks for packets without a link header, as those that leave the machine have none.
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
	// MAC is the device's address; frames written to FD must bear it.
	MAC [6]byte

	// Far says that it is a socket to another machine, whose packets are to be no longer than
	// the link's MTU.
	Remote bool

	index int // of the emulator's end of a veth pair, 0 without one
}

// Maker makes devices of one kind.
type Maker struct {
	kind Kind
	own  int // namespace of this process's veth ends
}

// NewMaker prepares for making devices.
func NewMaker(kind Kind) (*Maker, error) {
	m := &Maker{kind: kind, own: -1}
	if kind != Veth {
		return m, nil
	}
	return m, onThread(func() error { return m.createNamespace() })
}

// Make makes all devices or none. The ports are in the order of wants.
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

// Remove takes devices away.
func (m *Maker) Remove(ports []*Port) error {
	err := closeAll(ports)
	if m.kind == Veth && len(ports) > 0 {
		err = errors.Join(err, onThread(func() error { return m.removeVeths(ports) }))
	}
	return err
}

// Close frees what the maker holds. Devices that were not removed may go with it.
func (m *Maker) Close() error {
	if m.own < 0 {
		return nil
	}
	return unix.Close(m.own)
}

// onThread runs f on a thread of its own, which may change its namespace and is thrown
// away after that. It runs at normal priority: making devices is long work.
func onThread(f func() error) error {
	return netns.OnNewThread(func() error {
		// Refused only where nothing was raised before.
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
