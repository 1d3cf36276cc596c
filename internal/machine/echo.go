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
