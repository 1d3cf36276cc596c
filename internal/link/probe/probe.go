// Package probe measures an emulated network from inside its namespaces: round trips with RTT, bandwidth with
// Bandwidth.
//
// Both use the kernel's packet timestamps. They measure the time from the sender's IP stack to the receiver's, and
// not the time until the scheduler runs the prober. A busy machine affects the results only if it delays the packets.
package probe

import (
	"errors"
)

// Inside is a place in the network. Its dynamic type must be comparable, for example a pointer.
type Inside interface {
	// Do calls f with the calling thread inside the place's network namespace.
	Do(f func() error) error
	// Addr is the place's IPv4 address.
	Addr() string
}

// Pair is one direction between two places.
type Pair struct{ From, To Inside }

var (
	// ErrNoAnswer means that no packet of a train arrived.
	ErrNoAnswer = errors.New("no packet arrived")
	// ErrDisturbed means that the machine delayed every train, so that there is no result.
	ErrDisturbed = errors.New("every packet train was disturbed")
	// ErrStarved means that the prober could not send as fast as the link transmits. The result is a lower bound.
	ErrStarved = errors.New("the prober could not keep the link busy")
)
