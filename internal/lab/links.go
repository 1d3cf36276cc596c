package lab

import (
	"context"
	"fmt"
	"time"

	"skerry/internal/link"
)

// Link is a link of a lab that is up.
type Link struct {
	ID string `json:"id"`
	A  string `json:"a"` // node
	B  string `json:"b"` // node
	// AB and BA are the present qualities.
	AB link.Quality `json:"ab"`
	BA link.Quality `json:"ba"`
	// BaseAB and BaseBA are what Scale multiplies the latency of.
	BaseAB link.Quality `json:"base_ab"`
	BaseBA link.Quality `json:"base_ba"`
	// Real says that the link is left as it is: what lies between two machines, with AB and BA on top of
	// that. Way is how long packets took there, one way, when the lab came up.
	Real bool          `json:"real,omitempty"`
	Way  time.Duration `json:"way_ns,omitempty"`
	// Device is the name of the network device at both ends, Tunnel that of the device
	// that encrypts what goes over it, "" where nothing does.
	Device string `json:"device"`
	Tunnel string `json:"tunnel,omitempty"`
}

// RTT is the round trip as it is to be at present; of a real link what was measured when the lab came
// up, and what is added to it.
func (k Link) RTT() time.Duration { return k.AB.Latency + k.BA.Latency + 2*k.Way }

// specs describes the links for machines.
func (l *Lab) specs() []link.Spec {
	specs := make([]link.Spec, len(l.links.Links))
	for i, k := range l.links.Links {
		specs[i] = link.Spec{
			ID: k.ID, A: link.End{Node: k.A, Device: k.Device}, B: link.End{Node: k.B, Device: k.Device},
			AB: k.AB, BA: k.BA, Seed: seedOf(l.state.Seed, k.ID), Real: k.Real,
		}
	}
	return specs
}

// byID are the links' places in the topology's order.
func (s linksState) byID() map[string]int {
	at := make(map[string]int, len(s.Links))
	for i, k := range s.Links {
		at[k.ID] = i
	}
	return at
}

// Stats returns the statistics of the named links, or of all links.
func (l *Lab) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return l.part.Stats(ctx, ids...)
}

// link returns a link as it is; ErrNoLink when there is none of that name.
func (l *Lab) link(id string) (Link, error) {
	for _, k := range l.Links() {
		if k.ID == id {
			return k, nil
		}
	}
	return Link{}, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, id)
}
