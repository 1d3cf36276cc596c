// Package tunnel encrypts links: a WireGuard tunnel of its own over each, from device to
// device. The kernel makes them where it has WireGuard; elsewhere wireguard-go does, as a
// library, all tunnels of a lab in one process.
//
//	node A: wg3 (tunnel) ─ UDP ─► lk3 (link) ══ emulated ══ lk3 ─ UDP ─► wg3 :node B
//
// Keys are made per lab, are handed to the process over its standard input, and are never
// written anywhere.
package tunnel

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

const (
	// MTU of the devices: 1500 less WireGuard's 60 bytes over IPv4, and room for IPv6.
	MTU = 1420
	// firstPort is the UDP port of the first tunnel of a lab; each has one of its own.
	firstPort = 20000
	// maxTunnels is how many ports there are from firstPort on.
	maxTunnels = 40000
)

// ErrTooMany says that a lab has more links than tunnels can be told apart.
var ErrTooMany = errors.New("too many tunnels")

// Spec is a tunnel over one link.
type Spec struct {
	A End `json:"a"`
	B End `json:"b"`
}

// End is one end of a tunnel.
type End struct {
	// Netns is the path of its network namespace, Device the name of the device made
	// there.
	Netns  string `json:"netns"`
	Device string `json:"device"`
	// Addr is the end's address on the link.
	Addr netip.Addr `json:"addr"`
	// Port and Key are set by prepare.
	Port int         `json:"port"`
	Key  wgtypes.Key `json:"key"` // private
}

// assignKeys gives every tunnel a port and two keys.
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
