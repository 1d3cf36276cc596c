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

// A node may be the machine itself. Then the machine's own network namespace, which outlives every lab,
// gets something of one. That nothing of it stays follows from what it is:
//
//  1. It is the TUN devices of the node's links and what hangs on them: their settings, addresses, routes. The
//     emulator makes them through a descriptor which it keeps, not as persistent ones. However it ends, the kernel
//     closes that, and the devices go with all that hangs on them. So these are gone once no process of
//     the lab runs, which clearing a lab begins with, and nothing has to be remembered.
//  2. Devices of another kind would stay: where TUN is closed, the node is refused. So is a second lab's, whose
//     devices would have the same names and addresses.
//  3. What clears a lab kills the processes that are in the namespaces mounted in its directory, where there are no control
//     groups, and removes the devices of those that another process holds. The machine's is never mounted there: netns.Own
//     leads every process to it without a mount. The node's processes are found by its control group alone,
//     beside tag and journal: where there are none, the node is refused.
//  4. Settings of the whole machine are not changed: the agent may be killed before it changes them back.
//  5. The processes have a mount namespace of their own, for names of nodes: a copy of the machine's mounts that
//     ends with them. What they write outside their directory is on the machine's disk, as what is done by hand there.

// errWhole says that this machine cannot be a node.
var errWhole = errors.New("this machine cannot be a node itself")

// canBeWhole tells whether this machine can be a node.
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

// alone refuses a part whose node is the machine while that is another lab's. The caller has the store's
// lock, so that no other part is prepared meanwhile.
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

// vacant refuses links of a node that is the machine to addresses which the machine's own network has. The
// caller holds mu.
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

// own gives the node that is the machine its address, on each device of its links: they all have it, so that it
// is there while any is. The caller holds mu.
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

// wholeNode is the node that is the machine, where there is one. The caller holds mu.
func (p *part) wholeNode() (node, bool) {
	for _, n := range p.record.Nodes {
		if n.whole() {
			return n, true
		}
	}
	return node{}, false
}

// others are the addresses of devices beside a node's own.
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

// ends are where routes lead.
func ends(routes []machine.Route) (addrs []netip.Addr) {
	for _, r := range routes {
		addrs = append(addrs, r.To)
	}
	return addrs
}
