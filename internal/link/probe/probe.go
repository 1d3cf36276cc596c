// Package probe measures an emulated network from inside its namespaces: round
// trips with RTT, bandwidth with Bandwidth.
//
// Both rest on the kernel's own packet timestamps. What is measured is the time
// between the moments a packet leaves its sender's IP stack and enters its
// receiver's, not the time it took until the scheduler let the prober run: a busy
// machine widens the figures only as far as it delays the packets themselves.
package probe

import (
	"errors"
)

// Inside is a place in the network to measure from or to. Its dynamic type must be
// comparable, as pointers are; a host.Inside is one.
type Inside interface {
	// Do calls f with the calling thread inside the place's network namespace.
	Do(f func() error) error
	// Addr is the IPv4 address that others reach the place by.
	Addr() string
}

// Pair is one direction between two places.
type Pair struct{ From, To Inside }

// What a measurement may end with; test with errors.Is.
var (
	// ErrNoAnswer means that not one packet of a train arrived.
	ErrNoAnswer = errors.New("no packet arrived")
	// ErrDisturbed means that the machine held up every train: nothing is known.
	ErrDisturbed = errors.New("every packet train was disturbed")
	// ErrStarved means that the prober could not send as fast as the link carries:
	// the figure that comes with it is a lower bound.
	ErrStarved = errors.New("the prober could not keep the link busy")
)
