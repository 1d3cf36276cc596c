package tunnel

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"skerry/internal/kernel/netns"
)

// CheckKernel returns why the kernel cannot create tunnels, nil if it can.
func CheckKernel() error {
	return netns.OnNewThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if err := addDevice("wg"); err != nil {
			return fmt.Errorf("the kernel makes no WireGuard device: %w", err)
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
				return fmt.Errorf("make the tunnel %s at %s: %w", own.Device, own.Addr, err)
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
