package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/rootless"
	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
	"skerry/internal/machine"
	"skerry/internal/machine/network"
)

// A node may be the machine itself. Then a lab adds devices to the machine's own network namespace, which outlives every
// lab. Nothing of them stays, for these reasons:
//
//  1. The lab adds only TUN devices with their settings, addresses and routes. The emulator makes them through a
//     descriptor that it keeps open, not as persistent devices. However the emulator ends, the kernel closes the
//     descriptor and removes the device with its addresses and routes. Clearing a lab kills its processes first.
//  2. Other kinds of devices would stay. If TUN is unavailable, the node is refused. A second lab is also refused,
//     because its devices would have the same names and addresses.
//  3. Without control groups, clearing a lab kills the processes in the namespaces mounted in its directory and removes
//     devices in namespaces that other processes hold. The machine's namespace is never mounted there: netns.Own refers
//     to it without a mount. The node's processes are found by control group, tag and journal. Without control groups
//     the node is refused.
//  4. Settings of the whole machine do not change, because a killed agent could not restore them.
//  5. The processes have a mount namespace of their own for the nodes' names: a copy of the machine's mounts that ends
//     with them. What they write outside their directory stays on the machine's disk, like manual changes.

var errWhole = errors.New("this machine cannot be a node itself")

// canBeWhole returns why this machine cannot be a node, nil if it can.
func canBeWhole() error {
	if rootless.Inside() {
		return advice.With(fmt.Errorf("%w: skerry does not run as root there", errWhole), "let it, by sudo: true for example, or leave out whole: true")
	}
	if err := unix.Access(device.TUNPath, unix.R_OK|unix.W_OK); err != nil {
		return advice.With(fmt.Errorf("%w: open %s: %w", errWhole, device.TUNPath, err), "load the tun module (modprobe tun), or leave out whole: true")
	}
	if _, err := cgroup.Open(); err != nil {
		return advice.With(fmt.Errorf("%w: its processes could not be told from others: %w", errWhole, err), "leave out whole: true")
	}
	return nil
}

// alone returns an error if the machine is a node of another lab. The caller holds the store's lock, so that no other part
// is prepared meanwhile.
func (p *part) alone(ctx context.Context) error {
	names, err := p.place.Store.ListLabs()
	if err != nil {
		return err
	}
	for _, name := range names {
		other := p.place.Store.Lab(name)
		if r := inspect(other); r.plan == nil || !r.plan.Whole {
			continue
		}
		if err := vacate(ctx, other); err != nil {
			return fmt.Errorf("%w: it is a node of another lab: %w", errWhole, err)
		}
	}
	return nil
}

// wholly checks the nodes of a part whose node is the machine. The caller holds mu.
func (p *part) wholly() error {
	if !p.ask.Whole {
		return nil
	}
	for _, n := range p.record.Nodes {
		if len(p.record.Nodes) > 1 {
			return fmt.Errorf("%w: it would be %d", errWhole, len(p.record.Nodes))
		}
		if n.CPU > 0 || n.Memory > 0 || n.Volume.Enabled() || p.ask.Forward {
			return fmt.Errorf("%w: %s is to have limits, a volume or packets of others to pass on", errWhole, n.Name)
		}
	}
	return nil
}

// vacant returns an error if links of a whole machine use addresses of the machine's own network. The caller holds mu.
func (p *part) vacant(links []link.Spec) error {
	n, ok := p.wholeNode()
	if !ok || len(links) == 0 {
		return nil
	}
	at, err := n.network()
	if err != nil {
		return err
	}
	return netns.OnNewThread(func() error { return at.Vacant(at.Addr) })
}

// own sets the address of a whole machine on every device of its links, so that it exists while any of them does. The
// caller holds mu.
func (p *part) own(links []link.Spec) error {
	n, ok := p.wholeNode()
	if !ok {
		return nil
	}
	at, err := n.network()
	if err != nil {
		return err
	}
	var devices []machine.Device
	for _, l := range links {
		for _, end := range []link.End{l.A, l.B} {
			if end.Node == n.Name && end.Path == nil {
				addr := netip.PrefixFrom(at.Addr, at.Addr.BitLen())
				devices = append(devices, machine.Device{Node: n.Name, Name: end.Device, Addrs: []netip.Prefix{addr}})
			}
		}
	}
	return netns.OnNewThread(func() error {
		for _, d := range devices {
			if err := network.Alone(d.Name); err != nil {
				return err
			}
		}
		return at.SetAddresses(devices)
	})
}

// wholeNode returns the node that is the machine, if any. The caller holds mu.
func (p *part) wholeNode() (node, bool) {
	for _, n := range p.record.Nodes {
		if n.whole() {
			return n, true
		}
	}
	return node{}, false
}

// others returns the devices' addresses except own.
func others(own netip.Addr, devices []machine.Device) (addrs []netip.Addr) {
	for _, d := range devices {
		for _, a := range d.Addrs {
			if a.Addr() != own {
				addrs = append(addrs, a.Addr())
			}
		}
	}
	return addrs
}

// ends returns the routes' destinations.
func ends(routes []machine.Route) (addrs []netip.Addr) {
	for _, r := range routes {
		addrs = append(addrs, r.To)
	}
	return addrs
}
