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
	"net/netip"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
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

// End is one end of a tunnel.
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
				return fmt.Errorf("making a key: %w", err)
			}
			end.Key, end.Port = key, firstPort+i
		}
	}
	return nil
}
