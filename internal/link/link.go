// Package link defines emulated network links: what one direction does to packets (Quality), how that varies over time
// (Profile), and the Engine that creates links between network namespaces.
//
// The package does no I/O. There are two engines: netem configures the kernel's qdiscs, userspace forwards the packets in
// a separate process. Package linktest checks both against the same contract.
package link

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"time"
)

// Quality describes what one direction of a link does to its packets. The zero value is a perfect link.
type Quality struct {
	// Latency is the one-way delay.
	Latency time.Duration `json:"latency_ns"`
	// Jitter spreads the delay: the standard deviation of a normal, pareto or
	// paretonormal distribution, the half-width of a uniform one. It is at most MaxJitter.
	// Packets are not reordered by jitter: a packet never overtakes the one before it.
	Jitter       time.Duration `json:"jitter_ns,omitempty"`
	Distribution Distribution  `json:"distribution,omitempty"`
	// Loss, Duplicate, Reorder and Corrupt are independent probabilities (0..1) per packet. A reordered packet is
	// sent at once, ahead of delayed packets. A corrupted packet has one bit of its payload flipped.
	Loss      float64 `json:"loss,omitempty"`
	Duplicate float64 `json:"duplicate,omitempty"`
	Reorder   float64 `json:"reorder,omitempty"`
	Corrupt   float64 `json:"corrupt,omitempty"`
	// Burst, if set, adds losses in bursts.
	Burst *GilbertElliott `json:"burst,omitempty"`
	// Bandwidth in bit/s of IP packets including their headers (layer 3). 0 means no limit.
	Bandwidth int64 `json:"bandwidth_bps,omitempty"`
	// Queue bounds the bytes that wait for the bandwidth; excess packets are dropped at the tail. 0 means
	// DefaultQueue of the bandwidth and latency.
	Queue int64 `json:"queue_bytes,omitempty"`
	// Down drops every packet silently, like a lost radio link.
	Down bool `json:"down,omitempty"`
}

// Distribution names the shape of jitter.
type Distribution string

// The distributions that engines support; "" means Normal.
const (
	Uniform      Distribution = "uniform"
	Normal       Distribution = "normal"
	Pareto       Distribution = "pareto"
	ParetoNormal Distribution = "paretonormal"
)

// GilbertElliott is the two-state loss model of netem's "loss gemodel". Packets are lost with probability 1-K in the
// good state and 1-H in the bad one.
// Source: Elliott, "Estimates of error rates for codes on burst-noise channels", 1963.
type GilbertElliott struct {
	P float64 `json:"p"` // good -> bad, per packet
	R float64 `json:"r"` // bad -> good, per packet
	H float64 `json:"h"` // delivery in the bad state
	K float64 `json:"k"` // delivery in the good state
}

// Spec describes one link.
//
// The sender of a direction applies its quality. A link between two machines is therefore two links to the engines:
// each machine's engine gets a Spec with its own end as A, the outgoing quality as AB, and a UDPPath as the end B.
type Spec struct {
	// ID names the link uniquely within a lab; at most 64 bytes.
	ID   string  `json:"id"`
	A    End     `json:"a"`
	B    End     `json:"b"`
	AB   Quality `json:"ab"` // packets from A to B
	BA   Quality `json:"ba"` // packets from B to A
	MTU  int     `json:"mtu,omitempty"`
	Seed uint64  `json:"seed,omitempty"` // of every random choice on this link
	// Real keeps the delay of the path between two machines: AB and BA apply on top of it.
	Real bool `json:"real,omitempty"`
}

// Reversed returns the link as seen from the end B.
func (s Spec) Reversed() Spec {
	s.A, s.B, s.AB, s.BA = s.B, s.A, s.BA, s.AB
	return s
}

// End is one end of a link: a device that the engine creates in a namespace, up and without addresses.
type End struct {
	// Machine is the name of another machine with this end, "" for the present one.
	Machine string `json:"machine,omitempty"`
	Node    string `json:"node,omitempty"`
	// Netns is the path of the network namespace, for example /run/netns/NAME.
	Netns string `json:"netns,omitempty"`
	// Device is the name of the network device; at most 15 bytes.
	Device string `json:"device"`
	// Path, only in the end B, leads to another machine. There is no device then.
	Path *UDPPath `json:"far,omitempty"`
}

// Change replaces the qualities of a link; nil keeps a direction unchanged.
type Change struct {
	ID string   `json:"id"`
	AB *Quality `json:"ab,omitempty"`
	BA *Quality `json:"ba,omitempty"`
}

// Stats are the counters of one link since its creation.
type Stats struct {
	ID string   `json:"id"`
	AB Counters `json:"ab"`
	BA Counters `json:"ba"`
	// Path describes the path of a link between two machines.
	Path PathStats `json:"crossing,omitzero"`
}

// Counters of one direction. Bytes and Packets are delivered layer-3 packets; a super-packet counts as its packets on
// the wire.
type Counters struct {
	Bytes        uint64 `json:"bytes"`
	Packets      uint64 `json:"packets"`
	DroppedQueue uint64 `json:"dropped_queue"` // the bounded queue was full
	DroppedLoss  uint64 `json:"dropped_loss"`  // lost by Quality, or the link was down
	// Late is the delay of deliveries after their due times. netem leaves Known false.
	Late    Lateness `json:"late"`
	Account Account  `json:"account,omitzero"`
}

// Sub returns the counters of the time since an earlier reading; see Account.Sub.
func (c Counters) Sub(earlier Counters) Counters {
	c.Bytes -= earlier.Bytes
	c.Packets -= earlier.Packets
	c.DroppedQueue -= earlier.DroppedQueue
	c.DroppedLoss -= earlier.DroppedLoss
	c.Account = c.Account.Sub(earlier.Account)
	return c
}

// Lateness summarises delays after due times.
type Lateness struct {
	Known bool          `json:"known"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Engine creates and controls links. It is safe for concurrent use.
type Engine interface {
	// Name is "netem" or "userspace".
	Name() string
	// Create creates all links or none.
	Create(ctx context.Context, specs []Spec) error
	// Set changes links at one moment, without losing or reordering packets. A packet in flight keeps its due
	// time; queued packets leave at the new bandwidth.
	Set(ctx context.Context, changes []Change) error
	// Stats returns the named links, or all links.
	Stats(ctx context.Context, ids ...string) ([]Stats, error)
	// Remove removes links and their devices; an unknown link is no error.
	Remove(ctx context.Context, ids ...string) error
	// Close removes every link and releases the engine's resources.
	Close() error
}

// Profile is the quality of one direction of a link over time.
type Profile interface {
	// At returns the quality at t after the start of the profile.
	At(t time.Duration) Quality
}

// ProfileFunc adapts a function to a Profile.
type ProfileFunc func(t time.Duration) Quality

func (f ProfileFunc) At(t time.Duration) Quality { return f(t) }

var _ Profile = ProfileFunc(nil)

// Step is a quality that holds from a moment on.
type Step struct {
	At      time.Duration
	Quality Quality
}

// Steps returns a profile with the quality first until the first step, and then the quality of the latest step, as in a
// replayed trace. Of steps at the same moment the last one counts.
//
//	quality │        ╭───────
//	        │  ╭─────╯ step 2
//	        │──╯ step 1
//	        └──────────────── t
func Steps(first Quality, steps ...Step) Profile {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return ProfileFunc(func(t time.Duration) Quality {
		i := sort.Search(len(steps), func(i int) bool { return steps[i].At > t })
		if i == 0 {
			return first
		}
		return steps[i-1].Quality
	})
}

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
