package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/machine"
)

const (
	// firstPort is the UDP port of the first link between machines, at both ends; each has one of
	// its own, in a network that is the lab's.
	firstPort = 1024
	// proving bounds the wait for packets of the full length to cross to another machine and back,
	// look is between two looks whether they have. A lost handshake is tried again after 5 s.
	proving, look = 30 * time.Second, 10 * time.Millisecond
)

// Link implements machine.Links. Packets of the full length have crossed between machines when it
// returns.
func (p *part) Link(ctx context.Context, halves []link.Half) error {
	placed, err := p.placed(halves)
	if err != nil {
		return err
	}
	err = shared(p, placed, nodeOf, func(x machine.Part, these []link.Half) error { return x.Link(ctx, these) })
	if err != nil {
		return err
	}
	return p.prove(ctx, placed)
}

// Adopt implements machine.Links.
func (p *part) Adopt(ctx context.Context, halves []link.Half) error {
	placed, err := p.placed(halves)
	if err != nil {
		return err
	}
	return shared(p, placed, nodeOf, func(x machine.Part, these []link.Half) error { return x.Adopt(ctx, these) })
}

func nodeOf(h link.Half) string { return h.Node }

// placed are halves that know where their peers are.
func (p *part) placed(halves []link.Half) ([]link.Half, error) {
	placed := make([]link.Half, 0, len(halves))
	ports := map[string]uint16{}
	for _, h := range halves {
		here, err := p.index(h.Node)
		if err != nil {
			return nil, err
		}
		if h.Peer.Machine != "" {
			return nil, fmt.Errorf("link %s from %s to %s: %w", h.Link, h.Node, h.Peer.Node, machine.ErrElsewhere)
		}
		there, err := p.index(h.Peer.Node)
		if err != nil {
			return nil, err
		}
		if here != there {
			if _, seen := ports[h.Link]; !seen {
				if len(ports) > 1<<16-1-firstPort {
					return nil, fmt.Errorf("%w: %d links between machines are too many", link.ErrInvalid, len(ports)+1)
				}
				ports[h.Link] = firstPort + uint16(len(ports))
			}
			port := ports[h.Link]
			h.Peer.Machine = p.fleet.members[there].Name
			h.Path = &link.UDPPath{Local: netip.AddrPortFrom(inside(here), port), Remote: netip.AddrPortFrom(inside(there), port), Real: h.Real}
			h.MTU = p.mtu
		}
		placed = append(placed, h)
	}
	return placed, nil
}

// prove waits until packets of the full length have crossed on every link between machines.
func (p *part) prove(ctx context.Context, halves []link.Half) error {
	var far []link.Half
	for _, h := range halves {
		if h.Path != nil {
			far = append(far, h)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, proving, errSilent)
	defer cancel()
	for len(far) > 0 {
		sent, err := p.Sent(ctx)
		if err == nil {
			if far = unproved(far, sent); len(far) > 0 {
				err = linger.For(ctx, look)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err != nil {
			h := far[0]
			return fmt.Errorf("link %s: packets of %d bytes do not cross from %s to %s: %w", h.Link, h.MTU,
				p.fleet.members[p.fleet.at[h.Node]].Name, h.Peer.Machine, context.Cause(ctx))
		}
	}
	return nil
}

// unproved are the halves over which no packet of the full length has crossed yet.
func unproved(halves []link.Half, sent []link.Sent) []link.Half {
	proved := map[link.Sending]bool{}
	for _, s := range sent {
		proved[link.Sending{Link: s.Link, Node: s.Node}] = s.Path.Ready
	}
	var rest []link.Half
	for _, h := range halves {
		if !proved[link.Sending{Link: h.Link, Node: h.Node}] {
			rest = append(rest, h)
		}
	}
	return rest
}

var errSilent = errors.New("no answer; is a firewall between them?")

// Send implements machine.Links.
func (p *part) Send(ctx context.Context, changes []link.Sending) error {
	// A stranger to a link is refused by a machine that knows the link.
	lists := make([][]link.Sending, len(p.parts))
	for _, c := range changes {
		i, ok := p.fleet.at[c.Node]
		if !ok {
			return fmt.Errorf("%w: %s at %s", link.ErrUnknown, c.Link, c.Node)
		}
		lists[i] = append(lists[i], c)
	}
	return p.each(func(i int, x machine.Part) error {
		if len(lists[i]) == 0 {
			return nil
		}
		return x.Send(ctx, lists[i])
	})
}

// Sent implements machine.Links: of each link the ends one after the other, in the order in which the
// machines tell of them.
func (p *part) Sent(ctx context.Context, links ...string) ([]link.Sent, error) {
	if p.fleet.One() {
		return p.lead().Sent(ctx, links...)
	}
	lists := make([][]link.Sent, len(p.parts))
	if err := p.each(func(i int, x machine.Part) error {
		got, err := x.Sent(ctx)
		lists[i] = got
		return err
	}); err != nil {
		return nil, err
	}
	byLink := map[string][]link.Sent{}
	var order []string
	for _, list := range lists {
		for _, s := range list {
			if byLink[s.Link] == nil {
				order = append(order, s.Link)
			}
			byLink[s.Link] = append(byLink[s.Link], s)
		}
	}
	if len(links) > 0 {
		order = links
	}
	var all []link.Sent
	for _, id := range order {
		if byLink[id] == nil {
			return nil, fmt.Errorf("%w: %s", link.ErrUnknown, id)
		}
		all = append(all, byLink[id]...)
	}
	return all, nil
}

// Lateness implements machine.Links: the worst of all machines.
func (p *part) Lateness(ctx context.Context, reset bool) (link.Lateness, error) {
	all := make([]link.Lateness, len(p.parts))
	err := p.each(func(i int, x machine.Part) (err error) {
		all[i], err = x.Lateness(ctx, reset)
		return err
	})
	worst := all[0]
	for _, l := range all[1:] {
		worst.Known = worst.Known && l.Known
		worst.P50, worst.P99, worst.Max = max(worst.P50, l.P50), max(worst.P99, l.P99), max(worst.Max, l.Max)
	}
	return worst, err
}
