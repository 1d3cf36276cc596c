package netem

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"net"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/link"
)

const (
	defaultMTU = 1500
	// randomAddress is IN6_ADDR_GEN_MODE_RANDOM: both ends have one MAC address, and their IPv6 link-local
	// addresses must differ.
	randomAddress = 3
)

// device is one end of a link: the sender of one direction.
type device struct {
	space *namespace
	name  string
	index int
	mtu   int
	// segments is the kernel's limit of packets per super-packet on the device. alone means that it
	// is set to one.
	segments int
	alone    bool
}

// createPair creates both devices of a link, up, without addresses and without qdiscs.
func (e *Engine) createPair(spec link.Spec) (a, b *device, err error) {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = defaultMTU
	}
	near, err := e.enter(spec.A.Netns)
	if err != nil {
		return nil, nil, err
	}
	far, err := e.enter(spec.B.Netns)
	if err != nil {
		e.release(near)
		return nil, nil, err
	}
	a = &device{space: near, name: spec.A.Device, mtu: mtu}
	b = &device{space: far, name: spec.B.Device, mtu: mtu}
	if err := e.createVeth(a, b, macAddress(spec.ID)); err != nil {
		e.release(near)
		e.release(far)
		return nil, nil, err
	}
	return a, b, nil
}

func (e *Engine) createVeth(a, b *device, mac net.HardwareAddr) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = a.name, a.mtu, mac
	veth := &netlink.Veth{
		LinkAttrs:        attrs,
		PeerName:         b.name,
		PeerHardwareAddr: mac,
		PeerNamespace:    netlink.NsFd(int(b.space.file)),
	}
	if err := a.space.devices.LinkAdd(veth); err != nil {
		return fmt.Errorf("create devices %s and %s: %w", a.name, b.name, err)
	}
	cpu := int(mac[len(mac)-1]) // spreads the links over the processors
	for i, d := range []*device{a, b} {
		if err := d.configure(); err != nil {
			return errors.Join(fmt.Errorf("configure %s: %w", d.name, err), a.remove())
		}
		if err := d.keepOrder((cpu + i) % runtime.NumCPU()); err != nil {
			e.log.Warn("packets of a link may overtake each other between processors", "device", d.name, "why", err)
		}
	}
	return nil
}

// macAddress derives a locally administered MAC address from an ID.
func macAddress(id string) net.HardwareAddr {
	hash := fnv.New64a()
	hash.Write([]byte(id))
	mac := net.HardwareAddr(hash.Sum(nil)[:6])
	mac[0] = mac[0]&^1 | 2
	return mac
}

func (d *device) configure() error {
	h := d.space.devices
	dev, err := h.LinkByName(d.name)
	if err != nil {
		return err
	}
	d.index, d.segments = dev.Attrs().Index, int(dev.Attrs().GSOMaxSegs)
	if err := h.LinkSetARPOff(dev); err != nil {
		return fmt.Errorf("disable ARP: %w", err)
	}
	// A kernel without IPv6 does not support this.
	if err := h.LinkSetIP6AddrGenMode(dev, randomAddress); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("set IPv6 address mode: %w", err)
	}
	// Qdiscs present when a device comes up start working a moment later; later qdiscs work at once.
	return h.LinkSetUp(dev)
}

// keepOrder makes one processor receive all packets of the device. veth passes a packet to the processor that
// sent it, and netem's timer and the senders run on different processors. Without this a packet could
// overtake the one before it.
func (d *device) keepOrder(cpu int) error {
	if d.space.sysfs < 0 {
		return nil // enter has logged a warning
	}
	name := "class/net/" + d.name + "/queues/rx-0/rps_cpus"
	fd, err := unix.Openat(d.space.sysfs, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte(cpuMask(cpu)))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// cpuMask formats a set of one processor for the kernel: hexadecimal, with a comma every 32 bits.
func cpuMask(cpu int) string {
	digits := new(big.Int).Lsh(big.NewInt(1), uint(cpu)).Text(16)
	for i := len(digits) - 8; i > 0; i -= 8 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// setSuperPackets restricts the device to single packets, or permits super-packets again.
func (d *device) setSuperPackets(alone bool) error {
	if alone == d.alone {
		return nil
	}
	segments := d.segments
	if alone {
		segments = 1
	}
	dev := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: d.index, Name: d.name}}
	if err := d.space.devices.LinkSetGSOMaxSegs(dev, segments); err != nil {
		return fmt.Errorf("set super-packet size: %w", err)
	}
	d.alone = alone
	// Connections notice the change at their next route lookup. If the flush is refused, as in a user
	// namespace, only new connections do.
	_ = d.space.rerouteSockets()
	return nil
}

// remove removes the device and its peer. A missing device is no error.
func (d *device) remove() error {
	// Without an index, during set-up, the name identifies the device.
	dev := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: d.index, Name: d.name}}
	err := d.space.devices.LinkDel(dev)
	var notFound netlink.LinkNotFoundError
	if err == nil || errors.Is(err, unix.ENODEV) || errors.As(err, &notFound) {
		return nil
	}
	return fmt.Errorf("remove device %s: %w", d.name, err)
}
