package tinc

import (
	"context"
	"fmt"
	"net/netip"

	"skerry/internal/lab/overlay"
	"skerry/internal/machine"
)

const (
	// device is what tincd reads packets from and writes them to.
	device = "tinc"
	// mtu leaves room in 1500 bytes for tinc's header, padding, digest, UDP and IP.
	mtu = 1400
)

// overlayNet is where the nodes' addresses are.
var overlayNet = netip.MustParsePrefix("10.77.0.0/16")

// makeDevice makes the device on a node and sends to it what is for other nodes; tincd,
// which finds it there, needs no script for that.
func makeDevice(ctx context.Context, n overlay.Net, node string) error {
	if err := n.On.TUN(ctx, machine.TUN{Node: node, Name: device, MTU: mtu, To: overlayNet}); err != nil {
		return fmt.Errorf("preparing %s for tinc: %w", node, err)
	}
	return nil
}
