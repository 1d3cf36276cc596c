package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/kernel/rootless"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
)

// betweenDevice is the device in the namespace between.
const betweenDevice = "between"

// between is a part's end of the network between machines.
type between struct {
	held *claim // of the port, until something listens there; nil from then on
	port int
	key  wgtypes.Key // private
	addr netip.Prefix
	// plain is the end of a network whose packets are not encrypted; nil of one whose are.
	plain *tunnel.VXLAN
	mesh  *tunnel.Tunnels // nil before Cross
}

// betweenSpace is the namespace of the network between machines. No node's name has a +.
func (p *part) betweenSpace() string { return p.place.Namespace("+between") }

// Meet implements machine.Between.
func (p *part) Meet(_ context.Context, m machine.Meeting) (machine.Met, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.between != nil {
		return machine.Met{}, fmt.Errorf("lab %s has met: %w", p.record.Name, machine.ErrExists)
	}
	if len(m.Others) == 0 {
		return machine.Met{}, errors.New("there is no other machine to meet")
	}
	if rootless.Inside() { // in a network of its own, out of which nothing leads
		err := errors.New("meet the other machines: skerry does not run as root here, and cannot leave by the machine's network")
		return machine.Met{}, advice.With(err, "let it, by sudo: true for example, or place all nodes on this machine")
	}
	b := &between{addr: m.Addr}
	path, err := pathMTU(m.Others)
	if err == nil && m.Plain == 0 {
		b.key, err = wgtypes.GeneratePrivateKey()
	}
	if err == nil {
		err = netns.OnNewThread(func() error { return network.Make(p.betweenSpace(), netip.Addr{}, nil) })
	}
	if err == nil {
		b.held, err = claimPort()
	}
	if err != nil {
		return machine.Met{}, fmt.Errorf("meet the other machines: %w", err)
	}
	b.port = b.held.port
	p.between = b
	met := machine.Met{Key: b.key.PublicKey().String(), Port: b.port, Path: path}
	if m.Plain != 0 {
		b.plain = &tunnel.VXLAN{Netns: p.betweenSpace(), Device: betweenDevice, Network: m.Plain, Port: b.port, HardwareAddr: tunnel.NewHardwareAddr()}
		met.Key = b.plain.HardwareAddr.String()
	}
	return met, nil
}

// Cross implements machine.Between.
func (p *part) Cross(ctx context.Context, c machine.Crossing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.between
	if b == nil || b.held == nil {
		return fmt.Errorf("reach the other machines: %w", machine.ErrElsewhere)
	}
	err := b.held.open()
	if err == nil {
		err = p.cross(ctx, b, c.Others)
	}
	err = errors.Join(err, b.held.close())
	b.held = nil
	if err != nil {
		return fmt.Errorf("reach the other machines: %w", err)
	}
	at := network.Node{Netns: p.betweenSpace(), Addr: b.addr.Addr()}
	device := machine.Device{Name: betweenDevice, Addrs: []netip.Prefix{b.addr}, MTU: b.mtu(c.Path), Up: true}
	return netns.OnNewThread(func() error { return at.Address([]machine.Device{device}) })
}

// cross makes the device by which packets leave for other machines. The caller holds mu.
func (p *part) cross(ctx context.Context, b *between, others []machine.Other) error {
	if b.plain != nil {
		for _, o := range others {
			addr, err := net.ParseMAC(o.Key)
			if err != nil {
				return fmt.Errorf("the key of %s: %w", o.Machine, err)
			}
			b.plain.Peers = append(b.plain.Peers, tunnel.VXLANPeer{HardwareAddr: addr, At: o.At, Addr: o.Addr})
		}
		return b.plain.Start()
	}
	mesh := tunnel.Mesh{Netns: p.betweenSpace(), Device: betweenDevice, Key: b.key, Port: b.port}
	for _, o := range others {
		key, err := wgtypes.ParseKey(o.Key)
		if err != nil {
			return fmt.Errorf("the key of %s: %w", o.Machine, err)
		}
		mesh.Peers = append(mesh.Peers, tunnel.MeshPeer{Key: key, At: o.At, Addr: o.Addr})
	}
	var err error
	b.mesh, err = tunnel.StartMesh(ctx, mesh, p.tunnelOptions())
	return err
}

// mtu is that of the device, where packets between machines are to be no longer than path.
func (b *between) mtu(path int) int {
	if b.plain != nil {
		return tunnel.VXLANMTU(path)
	}
	return tunnel.MeshMTU(path)
}

// tunnelOptions are how processes that encrypt are started.
func (p *part) tunnelOptions() tunnel.Options {
	return tunnel.Options{
		Command: []string{p.machine.Exe, "agent", "wireguard"},
		LogFile: p.place.File(statedir.TunnelLog),
		Env:     []string{host.LabVariable + "=" + p.record.ID}, ExitWithOwner: p.record.Owned,
		OnStart: func(pid int) error {
			process, err := procfs.FindProcess(pid)
			if err != nil {
				return err
			}
			return p.journal.Began(process, journal.Tunneller)
		},
	}
}

// close ends the network between machines; the kernel's goes with its namespace.
func (b *between) close() error {
	if b == nil {
		return nil
	}
	var errs []error
	if b.held != nil {
		errs = append(errs, b.held.close())
		b.held = nil
	}
	if b.mesh != nil {
		errs = append(errs, b.mesh.Close())
	}
	return errors.Join(errs...)
}

// pathMTU is the longest packet, in bytes, that this machine's network takes to all of the
// addresses, as far as its kernel knows.
func pathMTU(others []netip.Addr) (least int, err error) {
	for _, a := range others {
		c, err := (&net.Dialer{Timeout: time.Second}).Dial("udp", netip.AddrPortFrom(a, machine.FirstPort).String()) // sends nothing
		if err != nil {
			return 0, fmt.Errorf("find the way to %s: %w", a, err)
		}
		mtu, err := mtuOf(c.(*net.UDPConn), a.Is4())
		c.Close()
		if err != nil {
			return 0, fmt.Errorf("find the way to %s: %w", a, err)
		}
		if least == 0 || mtu < least {
			least = mtu
		}
	}
	return min(least, longestPath), nil
}

// longestPath is as long as packets of links may be, with all that goes before them.
const longestPath = 9000

func mtuOf(c *net.UDPConn, ip4 bool) (mtu int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if ip4 {
			mtu, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU)
		} else {
			mtu, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU)
		}
	})
	return mtu, errors.Join(controlErr, err)
}
