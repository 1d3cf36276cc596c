package tunnel

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"skerry/internal/kernel/netns"
)

// Mesh is one machine's end of an encrypted network between machines: a device in its own namespace, whose
// encrypted packets leave through the machine's network.
//
//	namespace: mesh0 (10.79.0.1) ─► WireGuard ─► UDP port of the machine ══► other machines
type Mesh struct {
	// Netns is the path of the namespace, Device the name of the new device.
	Netns  string `json:"netns"`
	Device string `json:"device"`
	// Key is the machine's private key, Port its UDP port.
	Key   wgtypes.Key `json:"key"`
	Port  int         `json:"port"`
	Peers []MeshPeer  `json:"peers"`
}

// MeshPeer is another machine in a Mesh.
type MeshPeer struct {
	Key  wgtypes.Key    `json:"key"`  // public
	At   netip.AddrPort `json:"at"`   // destination of encrypted packets
	Addr netip.Addr     `json:"addr"` // within the mesh
}

// meshHeader is the maximum overhead of a mesh in bytes: WireGuard, UDP and IPv6. Packets are padded to a multiple
// of padding.
const meshHeader, padding = 32 + 8 + 40, 16

// MeshMTU returns the MTU of a mesh whose encrypted packets have at most path bytes.
func MeshMTU(path int) int { return (path - meshHeader) &^ (padding - 1) }

// StartMesh creates a machine's end of a network between machines, in the kernel if possible, otherwise in a
// process. The device exists when StartMesh returns, down and without an address.
func StartMesh(ctx context.Context, m Mesh, o Options) (*Tunnels, error) {
	if CheckKernel() == nil {
		return &Tunnels{}, m.createInKernel()
	}
	t, err := spawn(ctx, job{Mesh: &m, ExitWithOwner: o.ExitWithOwner}, o)
	if err != nil {
		return nil, fmt.Errorf("start the mesh process: %w", err)
	}
	return t, nil
}

// open creates the device in its namespace. The UDP socket is in the caller's namespace.
func (m Mesh) open(log *slog.Logger) (endpoint, error) {
	e := endpoint{name: m.Device}
	err := netns.Do(m.Netns, func() error {
		t, err := openTUN(m.Device)
		if err != nil {
			return err
		}
		e.Device = device.NewDevice(t, conn.NewDefaultBind(), &device.Logger{
			Verbosef: device.DiscardLogf,
			Errorf:   func(format string, args ...any) { log.Debug(fmt.Sprintf(format, args...), "tunnel", m.Device) },
		})
		return nil
	})
	if err == nil {
		if err = errors.Join(e.IpcSet(m.config()), retryPortInUse(func() error { return m.listen(e) })); err != nil {
			e.Close()
		}
	}
	if err != nil {
		return e, fmt.Errorf("create device %s between machines: %w", m.Device, err)
	}
	return e, nil
}

// listen brings the device up. It sets the port on every attempt: after a failed attempt the device would forget its
// port and choose another one, which no other machine knows.
func (m Mesh) listen(e endpoint) error {
	if err := e.IpcSet(fmt.Sprintf("listen_port=%d\n", m.Port)); err != nil {
		return err
	}
	return e.Up()
}

// config formats the mesh in WireGuard's configuration protocol.
func (m Mesh) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "private_key=%s\n", hex.EncodeToString(m.Key[:]))
	for _, p := range m.Peers {
		fmt.Fprintf(&b, "public_key=%s\nendpoint=%s\nallowed_ip=%s/%d\n", hex.EncodeToString(p.Key[:]), p.At, p.Addr, p.Addr.BitLen())
	}
	return b.String()
}

// createInKernel creates the device from the machine's namespace, where its encrypted packets leave, and moves it into
// the mesh's namespace.
func (m Mesh) createInKernel() error {
	space, err := unix.Open(m.Netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open namespace: %w", err)
	}
	defer unix.Close(space)
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	if err := handle.LinkAdd(&netlink.Wireguard{
		LinkAttrs: netlink.LinkAttrs{Name: m.Device, Namespace: netlink.NsFd(space)},
	}); err != nil {
		return fmt.Errorf("create device %s between machines: %w", m.Device, err)
	}
	return netns.Do(m.Netns, func() error {
		client, err := wgctrl.New()
		if err != nil {
			return err
		}
		return errors.Join(client.ConfigureDevice(m.Device, m.kernelConfig()), client.Close())
	})
}

func (m Mesh) kernelConfig() wgtypes.Config {
	c := wgtypes.Config{PrivateKey: &m.Key, ListenPort: &m.Port}
	for _, p := range m.Peers {
		only := net.IPNet{IP: p.Addr.AsSlice(), Mask: net.CIDRMask(p.Addr.BitLen(), p.Addr.BitLen())}
		c.Peers = append(c.Peers, wgtypes.PeerConfig{
			PublicKey: p.Key, Endpoint: net.UDPAddrFromAddrPort(p.At), AllowedIPs: []net.IPNet{only},
		})
	}
	return c
}
