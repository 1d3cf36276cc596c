package machine

import (
	"context"
	"net/netip"
	"time"

	"skerry/internal/link/probe"
)

// Measures are taken from within the network of a part's nodes.
type Measures interface {
	// Echo measures round trips from nodes to addresses that others of the lab answer at, in
	// the order asked for: package probe says how. Results that have lost everything are no
	// error.
	Echo(ctx context.Context, e Echoes) ([]probe.RTTResult, error)
	// Train sends a train of packets from one end to another, and tells how it came. Of a train
	// between two machines each is asked for its end, and the receiver's tells.
	Train(ctx context.Context, t Train) (probe.TrainResult, error)
}

// Echoes asks for round trips.
type Echoes struct {
	Ways     []Way         `json:"ways"`
	Count    int           `json:"count"`
	Interval time.Duration `json:"interval_ns"`
	// Undisturbed leaves out what the machine itself held up, as probe.Undisturbed does.
	Undisturbed bool `json:"undisturbed,omitempty"`
}

// Way is from a node to an address.
type Way struct {
	Node string     `json:"node"`
	To   netip.Addr `json:"to"`
}

// Train asks for a train of packets.
type Train struct {
	From    End         `json:"from"`
	To      End         `json:"to"`
	Packets probe.Train `json:"packets"`
	// Meeting is how the two ends find each other, where only one of them is asked for.
	Meeting *probe.Meeting `json:"meeting,omitempty"`
}

// End is a node, and the address that it has on the way; Node is "" where another machine is asked for this end.
type End struct {
	Node string     `json:"node,omitempty"`
	Addr netip.Addr `json:"addr"`
}
