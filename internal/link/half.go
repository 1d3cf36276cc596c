package link

import (
	"fmt"
	"net/netip"
	"time"
)

// Half is one half of a link: an end, the quality of what it sends, and where the other half
// is. It is all that the machine has to know that the end is on, since whoever sends shapes:
//
//	node A ──── Half{Sends: AB} ───► ◄─── Half{Sends: BA} ──── node B
//
// A link within one machine is told by two halves, too, which Join puts together.
type Half struct {
	Link string `json:"link"` // ID
	// Place is where the end is.
	Endpoint
	// Peer is where the other half's end is.
	Peer Endpoint `json:"peer"`
	// Sends is what happens to packets from here to the peer.
	Sends Quality `json:"sends"`
	MTU   int     `json:"mtu,omitempty"`
	Seed  uint64  `json:"seed,omitempty"` // of every random choice on this link
	// Real leaves the way to the peer's machine as it is: Sends comes on top of it.
	Real bool `json:"real,omitempty"`
	// Far is how the peer is reached that is on another machine.
	Path *UDPPath `json:"far,omitempty"`
}

// Endpoint is where an end of a link is.
type Endpoint struct {
	// Machine is the name of its machine, "" for the one that is asked.
	Machine string `json:"machine,omitempty"`
	Node    string `json:"node"`
	// Device is the name of the network device, at most 15 bytes.
	Device string `json:"device"`
}

// Sending is a change of what an end sends.
type Sending struct {
	Link  string  `json:"link"`
	Node  string  `json:"node"` // of the end
	Sends Quality `json:"sends"`
}

// Sent is what became of the packets that an end sent.
type Sent struct {
	Link string `json:"link"`
	Node string `json:"node"` // of the end
	Counters
	// Crossing is the way to the other half, where that is on another machine.
	Path PathStats `json:"crossing,omitzero"`
}

// Pair is both halves of a link; packets from A to B are what AB of a Spec is about.
type Pair struct{ A, B Half }

// PairHalves puts together the halves whose other half is among them, in the order in which the
// first of each comes; alone are those whose other half is elsewhere. ErrInvalid where two
// halves of a link do not say the same of it.
func PairHalves(halves []Half) (pairs []Pair, alone []Half, err error) {
	first := make(map[string]int, len(halves)/2)
	joined := make([]*Half, len(halves)) // by the place of the first half, the second
	for i, h := range halves {
		at, seen := first[h.Link]
		switch {
		case !seen:
			first[h.Link] = i
			continue
		case joined[at] != nil:
			return nil, nil, fmt.Errorf("%w %s: it has more than two halves", ErrInvalid, h.Link)
		case halves[at].Endpoint != h.Peer || halves[at].Peer != h.Endpoint || halves[at].Seed != h.Seed || halves[at].MTU != h.MTU:
			return nil, nil, fmt.Errorf("%w %s: its halves do not fit each other", ErrInvalid, h.Link)
		}
		joined[at] = &halves[i]
	}
	for i, h := range halves {
		switch {
		case first[h.Link] != i:
		case joined[i] != nil:
			pairs = append(pairs, Pair{h, *joined[i]})
		default:
			alone = append(alone, h)
		}
	}
	return pairs, alone, nil
}

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
