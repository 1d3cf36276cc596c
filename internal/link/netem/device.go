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
	// randomAddress is IN6_ADDR_GEN_MODE_RANDOM: IPv6's link-local addresses must
	// differ although the ends' MAC addresses do not.
	randomAddress = 3
)

// device is one end of a link: the sender of one direction.
type device struct {
	space *namespace
	name  string
	index int
	mtu   int
	// segments is how many packets the kernel lets a super-packet on the device
	// stand for; alone says that it was set to one.
	segments int
	alone    bool
}

// createPair makes both devices of a link, up, without addresses and without qdiscs.
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

// createVeth makes the devices.
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
		return fmt.Errorf("making devices %s and %s: %w", a.name, b.name, err)
	}
	cpu := int(mac[len(mac)-1]) // spreads the links over the processors
	for i, d := range []*device{a, b} {
		if err := d.configure(); err != nil {
			return errors.Join(fmt.Errorf("setting up %s: %w", d.name, err), a.remove())
		}
		if err := d.keepOrder((cpu + i) % runtime.NumCPU()); err != nil {
			e.log.Warn("packets of a link may overtake each other between processors", "device", d.name, "why", err)
		}
	}
	return nil
}

// macAddress is a locally administered MAC address made of an ID.
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
		return fmt.Errorf("switching ARP off: %w", err)
	}
	// A kernel without IPv6 has nothing to set.
	if err := h.LinkSetIP6AddrGenMode(dev, randomAddress); err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("choosing IPv6 addresses: %w", err)
	}
	// Qdiscs that a device has when it comes up work a moment later; those that it gets afterwards work at once.
	return h.LinkSetUp(dev)
}

// keepOrder has one processor receive all packets that arrive at the device. veth hands
// each packet to the processor that sent it, and netem's timer and the senders
// run on different ones: without this a packet can overtake the one before.
func (d *device) keepOrder(cpu int) error {
	if d.space.sysfs < 0 {
		return nil // enter has warned
	}
	name := "class/net/" + d.name + "/queues/rx-0/rps_cpus"
	fd, err := unix.Openat(d.space.sysfs, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte(cpuMask(cpu)))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// cpuMask is the kernel's notation of a set of one processor: hexadecimal, a comma
// after every 32 bits.
func cpuMask(cpu int) string {
	digits := new(big.Int).Lsh(big.NewInt(1), uint(cpu)).Text(16)
	for i := len(digits) - 8; i > 0; i -= 8 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// setSuperPackets sets whether packets travel alone or super-packets stand for many.
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
		return fmt.Errorf("setting the size of super-packets: %w", err)
	}
	d.alone = alone
	// Connections learn of it when they look up their route again. Where that
	// cannot be told (inside a user namespace), new ones do.
	_ = d.space.rerouteSockets()
	return nil
}

// remove takes the device and its peer away. One that is gone already, with its
// namespace or by another hand, is no error.
func (d *device) remove() error {
	// Without an index, the device was not set up yet, its name finds it.
	dev := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: d.index, Name: d.name}}
	err := d.space.devices.LinkDel(dev)
	var gone netlink.LinkNotFoundError
	if err == nil || errors.Is(err, unix.ENODEV) || errors.As(err, &gone) {
		return nil
	}
	return fmt.Errorf("removing device %s: %w", d.name, err)
}
