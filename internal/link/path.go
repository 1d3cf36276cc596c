package link

import (
	"fmt"
	"net/netip"
	"time"
)

// UDPPath connects a link to another machine: each of two UDP sockets receives only from the other one. The sender
// applies the quality and stamps each packet with its due time; the receiver delivers the packet then. Both addresses
// are of one family.
type UDPPath struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	// Real keeps the delay of the path: latencies apply on top of it.
	Real bool `json:"real,omitempty"`
}

// UDPPathHeader is the overhead of a UDPPath per packet in bytes: IPv4, UDP and the engine's header.
const UDPPathHeader = 20 + 8 + 10

// PathStats are the engine's measurements of a UDPPath by probes.
type PathStats struct {
	// Delay is half the median of recent round trips; 0 without replies.
	Delay time.Duration `json:"way_ns"`
	// Probes and Replies are counted from the creation of the link.
	Probes  uint64 `json:"asked"`
	Replies uint64 `json:"answered"`
	// Ready means that packets of the full MTU, which may not be fragmented, have crossed in both directions, and
	// that both engines know each other's clock.
	Ready bool `json:"proved"`
}

func (p UDPPath) validate(id string) error {
	if !p.Local.IsValid() || !p.Remote.IsValid() || p.Local.Addr().Is4() != p.Remote.Addr().Is4() {
		return fmt.Errorf("%w %s: path from %v to %v: want two addresses of one family", ErrInvalid, id, p.Local, p.Remote)
	}
	return nil
}
