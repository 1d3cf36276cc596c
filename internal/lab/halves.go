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

// halves are the links as machines are told of them: what each end sends, and to whom.
func (l *Lab) halves() []link.Half {
	halves := make([]link.Half, 0, 2*len(l.links.Links))
	for _, k := range l.links.Links {
		a, b := link.Endpoint{Node: k.A, Device: k.Device}, link.Endpoint{Node: k.B, Device: k.Device}
		seed := seedOf(l.state.Seed, k.ID)
		halves = append(halves,
			link.Half{Link: k.ID, Endpoint: a, Peer: b, Sends: k.AB, Seed: seed, Real: k.Real},
			link.Half{Link: k.ID, Endpoint: b, Peer: a, Sends: k.BA, Seed: seed, Real: k.Real})
	}
	return halves
}

// sendings are changes of links as the machines at their ends are told of them.
func (s linksState) sendings(changes []link.Change) []link.Sending {
	at := s.byID()
	var all []link.Sending
	for _, c := range changes {
		k := s.Links[at[c.ID]]
		if c.AB != nil {
			all = append(all, link.Sending{Link: c.ID, Node: k.A, Sends: *c.AB})
		}
		if c.BA != nil {
			all = append(all, link.Sending{Link: c.ID, Node: k.B, Sends: *c.BA})
		}
	}
	return all
}

// byID are the links' places in the topology's order.
func (s linksState) byID() map[string]int {
	at := make(map[string]int, len(s.Links))
	for i, k := range s.Links {
		at[k.ID] = i
	}
	return at
}

// Stats returns what the engine counted on the links named, or on all.
func (l *Lab) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	sent, err := l.part.Sent(ctx, ids...)
	if err != nil {
		return nil, err
	}
	links := linksState{Links: l.Links()}
	known, place := links.byID(), make(map[string]int, len(sent)/2)
	stats := make([]link.Stats, 0, len(sent)/2)
	for _, s := range sent {
		if _, seen := place[s.Link]; !seen {
			place[s.Link] = len(stats)
			stats = append(stats, link.Stats{ID: s.Link})
		}
		if to := &stats[place[s.Link]]; s.Node == links.Links[known[s.Link]].A {
			to.AB = s.Counters
		} else {
			to.BA = s.Counters
		}
	}
	return stats, nil
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
