// Package link is the vocabulary of emulated network links: what one
// direction of a link does to packets (Quality), how that varies over time
// (Profile), and the Engine that makes links between network namespaces real.
//
// The package itself does no I/O. Engines live below it: netem drives the kernel's
// qdiscs, userspace moves the packets through a process of its own. Both obey the
// contract that package linktest checks.
package link

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"
)

// Quality is what one direction of a link does to the packets that travel it.
// The zero value is a perfect link: no delay, no loss, no rate limit.
type Quality struct {
	// Latency is the one-way delay.
	Latency time.Duration `json:"latency_ns"`
	// Jitter spreads the delay: the standard deviation of a normal, pareto or
	// paretonormal distribution, the half-width of a uniform one. It is at most MaxJitter.
	// Packets are not reordered by jitter: a packet never overtakes the one before it.
	Jitter       time.Duration `json:"jitter_ns,omitempty"`
	Distribution Distribution  `json:"distribution,omitempty"`
	// Loss, Duplicate, Reorder and Corrupt are probabilities (0..1) drawn for
	// each packet on its own. A reordered packet is sent at once, past the queue
	// of delayed ones. A corrupted packet has one bit of its payload flipped.
	Loss      float64 `json:"loss,omitempty"`
	Duplicate float64 `json:"duplicate,omitempty"`
	Reorder   float64 `json:"reorder,omitempty"`
	Corrupt   float64 `json:"corrupt,omitempty"`
	// Burst, when set, adds losses that come in bursts.
	Burst *GilbertElliott `json:"burst,omitempty"`
	// Bandwidth in bit/s counts the bytes of IP packets, headers included (layer
	// 3). 0 means no limit.
	Bandwidth int64 `json:"bandwidth_bps,omitempty"`
	// Queue bounds, in bytes, what waits for the bandwidth; what exceeds it is
	// dropped at the tail. 0 means DefaultQueue of the bandwidth and latency.
	Queue int64 `json:"queue_bytes,omitempty"`
	// Down drops every packet silently, as a radio link that vanished does.
	Down bool `json:"down,omitempty"`
}

// Distribution names the shape of jitter.
type Distribution string

// The distributions an engine must know; "" means Normal.
const (
	Uniform      Distribution = "uniform"
	Normal       Distribution = "normal"
	Pareto       Distribution = "pareto"
	ParetoNormal Distribution = "paretonormal"
)

// GilbertElliott is the two-state loss model of netem's "loss gemodel": in the good
// state packets are lost with probability 1-K, in the bad one with probability 1-H.
// Source: Elliott, "Estimates of error rates for codes on burst-noise channels", 1963.
type GilbertElliott struct {
	P float64 `json:"p"` // good -> bad, per packet
	R float64 `json:"r"` // bad -> good, per packet
	H float64 `json:"h"` // delivery in the bad state
	K float64 `json:"k"` // delivery in the good state
}

// Spec asks an Engine for one link.
type Spec struct {
	// ID names the link uniquely within a lab; at most 64 bytes.
	ID   string  `json:"id"`
	A    End     `json:"a"`
	B    End     `json:"b"`
	AB   Quality `json:"ab"` // packets from A to B
	BA   Quality `json:"ba"` // packets from B to A
	MTU  int     `json:"mtu,omitempty"`
	Seed uint64  `json:"seed,omitempty"` // of every random choice on this link
}

// End is one end of a link: a device that the engine makes in a namespace, up and
// without addresses.
type End struct {
	// Netns is the path of the network namespace (/run/netns/NAME, /proc/PID/ns/net).
	Netns string `json:"netns"`
	// Device is the name of the network device; at most 15 bytes.
	Device string `json:"device"`
	// Far, of the end B alone, says that the link goes on to another machine.
	Path *UDPPath `json:"far,omitempty"`
}

// Change replaces the quality of a link's directions; nil leaves one as it is.
type Change struct {
	ID string   `json:"id"`
	AB *Quality `json:"ab,omitempty"`
	BA *Quality `json:"ba,omitempty"`
}

// Stats is what an engine counted on one link since it was created.
type Stats struct {
	ID string   `json:"id"`
	AB Counters `json:"ab"`
	BA Counters `json:"ba"`
	// Crossing is the way to the other machine, of a link whose end B is Far.
	Path PathStats `json:"crossing,omitzero"`
}

// Counters of one direction. Bytes and packets are layer-3 and count what was
// delivered, a super-packet as the packets on the wire that it stands for.
type Counters struct {
	Bytes        uint64 `json:"bytes"`
	Packets      uint64 `json:"packets"`
	DroppedQueue uint64 `json:"dropped_queue"` // the bounded queue was full
	DroppedLoss  uint64 `json:"dropped_loss"`  // lost as Quality asked, or the link was down
	// Late is how long after its due time the engine handed a packet over. An
	// engine that cannot know (netem) leaves Known false.
	Late    Lateness `json:"late"`
	Account Account  `json:"account,omitzero"`
}

// Lateness summarises a histogram of microseconds.
type Lateness struct {
	Known bool          `json:"known"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Engine makes links real. Its methods may be called from several goroutines.
type Engine interface {
	// Name is "netem" or "userspace".
	Name() string
	// Create makes all links or none.
	Create(ctx context.Context, specs []Spec) error
	// Set changes links at one moment, without losing or reordering packets. A packet
	// in flight keeps its due time; those in the queue leave at the new bandwidth.
	Set(ctx context.Context, changes []Change) error
	// Stats reports the links named, or all when none is.
	Stats(ctx context.Context, ids ...string) ([]Stats, error)
	// Remove takes links away with their devices; an unknown one is no error.
	Remove(ctx context.Context, ids ...string) error
	// Close removes every link and frees what the engine holds.
	Close() error
}

// Profile is the quality of one direction of a link over time.
type Profile interface {
	// At returns the quality at t after the start of the profile.
	At(t time.Duration) Quality
}

// ProfileFunc is a function that is a Profile.
type ProfileFunc func(t time.Duration) Quality

// At calls f.
func (f ProfileFunc) At(t time.Duration) Quality { return f(t) }

var _ Profile = ProfileFunc(nil)

// Step is a quality from a moment on.
type Step struct {
	At      time.Duration
	Quality Quality
}

// Steps is the profile that is first until the first step and from each step on what that
// step says; a trace that is replayed is one too. Steps at the same moment: the last counts.
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
