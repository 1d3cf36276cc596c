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
)

// underlayDevice is the device in the underlay's namespace.
const underlayDevice = "between"

// underlay is a part's end of the network between machines.
type underlay struct {
	held *portClaim // of the port, until something listens there; nil from then on
	port int
	key  wgtypes.Key // private
	addr netip.Prefix
	// plain is the device of an unencrypted network, nil with encryption.
	plain *tunnel.VXLAN
	mesh  *tunnel.Tunnels // nil before ConnectPeers
}

// underlayNetns is the underlay's namespace. Node names contain no +.
func (p *part) underlayNetns() string { return p.place.Namespace("+between") }

func (p *part) OpenEndpoint(_ context.Context, m machine.EndpointSpec) (machine.Endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underlay != nil {
		return machine.Endpoint{}, fmt.Errorf("lab %s: endpoint: %w", p.record.Name, machine.ErrExists)
	}
	if len(m.PeerAddrs) == 0 {
		return machine.Endpoint{}, errors.New("no peer machines")
	}
	if rootless.Inside() { // in an isolated network
		err := errors.New("open endpoint: skerry does not run as root here and cannot use the machine's network")
		return machine.Endpoint{}, advice.With(err, "let it, by sudo: true for example, or place all nodes on this machine")
	}
	b := &underlay{addr: m.Addr}
	path, err := pathMTU(m.PeerAddrs)
	if err == nil && m.Plain == 0 {
		b.key, err = wgtypes.GeneratePrivateKey()
	}
	if err == nil {
		err = netns.OnNewThread(func() error { return network.Make(p.underlayNetns(), netip.Addr{}, nil) })
	}
	if err == nil {
		b.held, err = claimPort()
	}
	if err != nil {
		return machine.Endpoint{}, fmt.Errorf("open endpoint: %w", err)
	}
	b.port = b.held.port
	p.underlay = b
	met := machine.Endpoint{Key: b.key.PublicKey().String(), Port: b.port, Path: path}
	if m.Plain != 0 {
		b.plain = &tunnel.VXLAN{Netns: p.underlayNetns(), Device: underlayDevice, Network: m.Plain, Port: b.port, HardwareAddr: tunnel.NewHardwareAddr()}
		met.Key = b.plain.HardwareAddr.String()
	}
	return met, nil
}

func (p *part) ConnectPeers(ctx context.Context, c machine.PeerSet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.underlay
	if b == nil || b.held == nil {
		return fmt.Errorf("connect peers: %w", machine.ErrElsewhere)
	}
	err := b.held.open()
	if err == nil {
		err = p.startTunnel(ctx, b, c.Peers)
	}
	err = errors.Join(err, b.held.close())
	b.held = nil
	if err != nil {
		return fmt.Errorf("connect peers: %w", err)
	}
	at := network.Node{Netns: p.underlayNetns(), Addr: b.addr.Addr()}
	device := machine.Device{Name: underlayDevice, Addrs: []netip.Prefix{b.addr}, MTU: b.mtu(c.Path), Up: true}
	return netns.OnNewThread(func() error { return at.SetAddresses([]machine.Device{device}) })
}

// startTunnel makes the device to the other machines. The caller holds mu.
func (p *part) startTunnel(ctx context.Context, b *underlay, others []machine.Peer) error {
	if b.plain != nil {
		for _, o := range others {
			addr, err := net.ParseMAC(o.Key)
			if err != nil {
				return fmt.Errorf("parse key of %s: %w", o.Machine, err)
			}
			b.plain.Peers = append(b.plain.Peers, tunnel.VXLANPeer{HardwareAddr: addr, At: o.At, Addr: o.Addr})
		}
		return b.plain.Start()
	}
	mesh := tunnel.Mesh{Netns: p.underlayNetns(), Device: underlayDevice, Key: b.key, Port: b.port}
	for _, o := range others {
		key, err := wgtypes.ParseKey(o.Key)
		if err != nil {
			return fmt.Errorf("parse key of %s: %w", o.Machine, err)
		}
		mesh.Peers = append(mesh.Peers, tunnel.MeshPeer{Key: key, At: o.At, Addr: o.Addr})
	}
	var err error
	b.mesh, err = tunnel.StartMesh(ctx, mesh, p.tunnelOptions())
	return err
}

// mtu returns the device's MTU for a path MTU of path bytes.
func (b *underlay) mtu(path int) int {
	if b.plain != nil {
		return tunnel.VXLANMTU(path)
	}
	return tunnel.MeshMTU(path)
}

func (p *part) tunnelOptions() tunnel.Options {
	return tunnel.Options{
		Command: []string{p.machine.Exe, "agent", "wireguard"},
		LogFile: p.place.Path(journal.TunnelLog),
		Env:     []string{host.LabVariable + "=" + p.record.ID}, ExitWithOwner: p.record.Owned,
		OnStart: func(pid int) error {
			process, err := procfs.FindProcess(pid)
			if err != nil {
				return err
			}
			return p.journal.AppendProcess(process, journal.Tunneller)
		},
	}
}

// close ends the network. A kernel device is removed with its namespace.
func (b *underlay) close() error {
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

// pathMTU returns the smallest path MTU to the addresses in bytes, as far as the kernel knows.
func pathMTU(others []netip.Addr) (least int, err error) {
	for _, a := range others {
		c, err := (&net.Dialer{Timeout: time.Second}).Dial("udp", netip.AddrPortFrom(a, machine.FirstPort).String()) // sends nothing
		if err != nil {
			return 0, fmt.Errorf("find path MTU to %s: %w", a, err)
		}
		mtu, err := mtuOf(c.(*net.UDPConn), a.Is4())
		c.Close()
		if err != nil {
			return 0, fmt.Errorf("find path MTU to %s: %w", a, err)
		}
		if least == 0 || mtu < least {
			least = mtu
		}
	}
	return min(least, longestPath), nil
}

// longestPath bounds packets including all headers, in bytes.
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

// portClaim reserves a UDP port among labs until a server listens on it. Without it:
//
// 1. Lab 1 finds a free port and binds a socket to it.
// 2. It closes the socket so that the kernel's WireGuard, or a process, can bind its own.
// 3. Lab 2 binds the port in between, and lab 1 fails.
//
// So every lab first binds the port's name, an abstract Unix socket. Such names belong to a network namespace, as ports do,
// and end with their process.
type portClaim struct {
	name net.Listener
	udp  *net.UDPConn
	port int
}

// claimPort claims a port that no other lab uses.
func claimPort() (*portClaim, error) {
	var err error
	for port := machine.FirstPort; port < machine.FirstPort+machine.Ports; port++ {
		c := &portClaim{port: port}
		if c.name, err = net.Listen("unix", fmt.Sprintf("@skerry-between-%d", port)); err == nil {
			if c.udp, err = net.ListenUDP("udp", &net.UDPAddr{Port: port}); err == nil {
				return c, nil
			}
			err = errors.Join(err, c.name.Close())
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	err = fmt.Errorf("reserve UDP port: %w", err)
	return nil, advice.With(err, "labs between machines take one of %d to %d each", machine.FirstPort, machine.FirstPort+machine.Ports-1)
}

// open frees the port for its server; other labs still avoid it.
func (c *portClaim) open() error { return c.udp.Close() }

func (c *portClaim) close() error {
	err := c.udp.Close()
	if errors.Is(err, net.ErrClosed) { // open did that
		err = nil
	}
	return errors.Join(err, c.name.Close())
}
