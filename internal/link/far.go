package link

import (
	"fmt"
	"net/netip"
	"time"
)

// UDPPath is where a link leaves its machine, and where it goes on: two UDP sockets, of which each
// takes packets from the other alone. Whoever sends shapes, and says when a packet is due; who receives
// hands it over then. The address families are the same.
type UDPPath struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	// Real leaves the way as it is: it is no part of a latency, which comes on top of it.
	Real bool `json:"real,omitempty"`
}

// UDPPathHeader is what the way to another machine adds to a packet of a link, in bytes: IPv4 and
// UDP headers, and what the engine says about the packet.
const UDPPathHeader = 20 + 8 + 10

// PathStats is what an engine knows of the way to another machine, by asking the engine there
// and being answered.
type PathStats struct {
	// Way is half the median of the last round trips; 0 where none came back.
	Delay time.Duration `json:"way_ns"`
	// Asked and Answered count the questions.
	Probes  uint64 `json:"asked"`
	Replies uint64 `json:"answered"`
	// Proved says that packets as long as the link's MTU have crossed there and back, which
	// must not be cut on the way, and that the two engines know each other's clock.
	Ready bool `json:"proved"`
}

func (f UDPPath) validate(id string) error {
	if !f.Local.IsValid() || !f.Remote.IsValid() || f.Local.Addr().Is4() != f.Remote.Addr().Is4() {
		return fmt.Errorf("%w %s: it leaves the machine at %v for %v", ErrInvalid, id, f.Local, f.Remote)
	}
	return nil
}
