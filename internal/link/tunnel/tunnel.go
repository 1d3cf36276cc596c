// Package tunnel encrypts links: one WireGuard tunnel over each link, from device to device. The kernel runs them if it
// supports WireGuard. Otherwise wireguard-go runs all tunnels of a lab in one process.
//
//	node A: wg3 (tunnel) ─ UDP ─► lk3 (link) ══ emulated ══ lk3 ─ UDP ─► wg3 :node B
//
// Keys are generated per lab, passed to the process on standard input, and never written to disk.
package tunnel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"skerry/internal/kernel/netns"
)

const (
	// MTU of the devices: 1500 minus WireGuard's 60 bytes over IPv4, with room for IPv6.
	MTU = 1420
	// firstPort is the UDP port of the first tunnel; each tunnel has its own.
	firstPort  = 20000
	maxTunnels = 40000
)

// ErrTooMany means that a lab has more links than tunnel ports.
var ErrTooMany = errors.New("too many tunnels")

type Spec struct {
	A End `json:"a"`
	B End `json:"b"`
}

type End struct {
	// Netns is the path of the network namespace, Device the name of the new device.
	Netns  string     `json:"netns"`
	Device string     `json:"device"`
	Addr   netip.Addr `json:"addr"`
	// Port and Key are set by assignKeys.
	Port int         `json:"port"`
	Key  wgtypes.Key `json:"key"` // private
}

func assignKeys(specs []Spec) error {
	if len(specs) > maxTunnels {
		return fmt.Errorf("%w: %d, at most %d", ErrTooMany, len(specs), maxTunnels)
	}
	for i := range specs {
		for _, end := range []*End{&specs[i].A, &specs[i].B} {
			key, err := wgtypes.GeneratePrivateKey()
			if err != nil {
				return fmt.Errorf("generate key: %w", err)
			}
			end.Key, end.Port = key, firstPort+i
		}
	}
	return nil
}

// CheckKernel returns why the kernel cannot create tunnels, nil if it can.
func CheckKernel() error {
	return netns.OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", err)
		}
		if err := addDevice("wg"); err != nil {
			return fmt.Errorf("create WireGuard device: %w", err)
		}
		return nil
	})
}

func addDevice(name string) error {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	return handle.LinkAdd(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: MTU}})
}

// createInKernel creates tunnels that end with their namespaces.
func createInKernel(specs []Spec) error {
	for _, s := range specs {
		for _, ends := range [][2]End{{s.A, s.B}, {s.B, s.A}} {
			own, peer := ends[0], ends[1]
			err := netns.Do(own.Netns, func() error {
				if err := addDevice(own.Device); err != nil {
					return err
				}
				client, err := wgctrl.New()
				if err != nil {
					return err
				}
				return errors.Join(client.ConfigureDevice(own.Device, kernelConfig(own, peer)), client.Close())
			})
			if err != nil {
				return fmt.Errorf("create tunnel %s at %s: %w", own.Device, own.Addr, err)
			}
		}
	}
	return nil
}

func kernelConfig(own, peer End) wgtypes.Config {
	everything := func(bits int) net.IPNet {
		return net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)}
	}
	return wgtypes.Config{
		PrivateKey: &own.Key, ListenPort: &own.Port,
		Peers: []wgtypes.PeerConfig{{
			PublicKey:  peer.Key.PublicKey(),
			Endpoint:   &net.UDPAddr{IP: peer.Addr.AsSlice(), Port: peer.Port},
			AllowedIPs: []net.IPNet{everything(32), everything(128)},
		}},
	}
}
