package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
)

const (
	// firstPort is the UDP port of the first link between machines, at both ends. Ports belong to the lab's own network.
	firstPort = 1024
	// pathTimeout bounds the wait until full-length packets cross to another machine and back. A lost handshake is repeated
	// after 5 s.
	pathTimeout = 30 * time.Second
	pathPoll    = 10 * time.Millisecond
)

// linkEnds are the indices of the machines at a link's ends.
type linkEnds struct{ a, b int }

// MakeLinks implements machine.Links. When it returns, full-length packets have crossed between machines.
func (p *part) MakeLinks(ctx context.Context, links []link.Spec) error {
	lists, err := p.placeLinks(links)
	if err != nil {
		return err
	}
	if err := eachList(ctx, p, lists, machine.Part.MakeLinks); err != nil {
		return err
	}
	return p.awaitPaths(ctx, links)
}

func (p *part) AdoptLinks(ctx context.Context, links []link.Spec) error {
	lists, err := p.placeLinks(links)
	if err != nil {
		return err
	}
	return eachList(ctx, p, lists, machine.Part.AdoptLinks)
}

// placeLinks returns the links of each machine. A link between two machines is a link to a UDPPath on both of them,
// whose random choices are independent.
func (p *part) placeLinks(links []link.Spec) ([][]link.Spec, error) {
	lists := make([][]link.Spec, len(p.parts))
	ends := make(map[string]linkEnds, len(links))
	ports := 0
	for _, l := range links {
		if l.A.Machine != "" || l.B.Machine != "" {
			return nil, fmt.Errorf("link %s from %s to %s: %w", l.ID, l.A.Node, l.B.Node, machine.ErrElsewhere)
		}
		a, err := p.index(l.A.Node)
		if err != nil {
			return nil, err
		}
		b, err := p.index(l.B.Node)
		if err != nil {
			return nil, err
		}
		ends[l.ID] = linkEnds{a, b}
		if a == b {
			lists[a] = append(lists[a], l)
			continue
		}
		if ports > 1<<16-1-firstPort {
			return nil, fmt.Errorf("%w: %d links between machines are too many", link.ErrInvalid, ports+1)
		}
		port := firstPort + uint16(ports)
		ports++
		l.MTU = p.mtu
		lists[a] = append(lists[a], p.leavingLink(l, a, b, port))
		lists[b] = append(lists[b], p.leavingLink(l.Reversed(), b, a, port))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links == nil {
		p.links = ends
	} else {
		maps.Copy(p.links, ends)
	}
	return lists, nil
}

// leavingLink returns a link as the machine of end A has it, with end B on another machine.
func (p *part) leavingLink(l link.Spec, here, there int, port uint16) link.Spec {
	l.B.Machine = p.fleet.members[there].Name
	l.B.Path = &link.UDPPath{Local: netip.AddrPortFrom(underlayAddr(here), port), Remote: netip.AddrPortFrom(underlayAddr(there), port), Real: l.Real}
	l.BA = link.Quality{}
	if l.A.Node > l.B.Node {
		l.Seed = ^l.Seed
	}
	return l
}

// ends returns the machines of a link's ends.
func (p *part) ends(id string) (linkEnds, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.links[id]
	if !ok {
		return e, fmt.Errorf("%w: %s", link.ErrUnknown, id)
	}
	return e, nil
}

// awaitPaths waits until full-length packets have crossed every link between machines.
func (p *part) awaitPaths(ctx context.Context, links []link.Spec) error {
	var waiting []link.Spec
	for _, l := range links {
		if p.fleet.at[l.A.Node] != p.fleet.at[l.B.Node] {
			waiting = append(waiting, l)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pathTimeout, errSilent)
	defer cancel()
	for len(waiting) > 0 {
		stats, err := p.LinkStats(ctx)
		if err == nil {
			ready := map[string]bool{}
			for _, s := range stats {
				ready[s.ID] = s.Path.Ready
			}
			waiting = slices.DeleteFunc(waiting, func(l link.Spec) bool { return ready[l.ID] })
			if len(waiting) > 0 {
				err = linger.For(ctx, pathPoll)
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err != nil {
			l := waiting[0]
			return fmt.Errorf("link %s: packets of %d bytes do not cross from %s to %s: %w", l.ID, p.mtu,
				p.fleet.members[p.fleet.at[l.A.Node]].Name, p.fleet.members[p.fleet.at[l.B.Node]].Name, context.Cause(ctx))
		}
	}
	return nil
}

var errSilent = errors.New("no answer; is a firewall between them?")

func (p *part) ShapeLinks(ctx context.Context, changes []link.Change) error {
	lists := make([][]link.Change, len(p.parts))
	for _, c := range changes {
		e, err := p.ends(c.ID)
		switch {
		case err != nil:
			return err
		case e.a == e.b:
			lists[e.a] = append(lists[e.a], c)
			continue
		}
		if c.AB != nil {
			lists[e.a] = append(lists[e.a], link.Change{ID: c.ID, AB: c.AB})
		}
		if c.BA != nil {
			lists[e.b] = append(lists[e.b], link.Change{ID: c.ID, AB: c.BA})
		}
	}
	return eachList(ctx, p, lists, machine.Part.ShapeLinks)
}

func (p *part) LinkStats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	if p.fleet.IsSingle() {
		return p.lead().LinkStats(ctx, ids...)
	}
	lists := make([][]link.Stats, len(p.parts))
	if err := p.each(func(i int, x machine.Part) error {
		got, err := x.LinkStats(ctx)
		lists[i] = got
		return err
	}); err != nil {
		return nil, err
	}
	byID := map[string]link.Stats{}
	var order []string
	for i, list := range lists {
		for _, s := range list {
			e, err := p.ends(s.ID)
			if err != nil {
				return nil, err
			}
			whole, seen := byID[s.ID]
			if !seen {
				order = append(order, s.ID)
			}
			switch {
			case e.a == e.b:
				whole = s
			case i == e.a:
				whole.AB = s.AB
			default:
				whole.BA = s.AB
			}
			if e.a != e.b {
				whole.ID = s.ID
				if seen {
					whole.Path = bothPaths(whole.Path, s.Path)
				} else {
					whole.Path = s.Path
				}
			}
			byID[s.ID] = whole
		}
	}
	if len(ids) > 0 {
		order = ids
	}
	all := make([]link.Stats, 0, len(order))
	for _, id := range order {
		s, ok := byID[id]
		if !ok {
			return nil, fmt.Errorf("%w: %s", link.ErrUnknown, id)
		}
		all = append(all, s)
	}
	return all, nil
}

// bothPaths combines the measurements at both ends of a path. The path is ready if both ends are.
func bothPaths(a, b link.PathStats) link.PathStats {
	return link.PathStats{
		Delay: max(a.Delay, b.Delay), Probes: a.Probes + b.Probes, Replies: a.Replies + b.Replies,
		Ready: a.Ready && b.Ready,
	}
}

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

func (p *part) MeasureRTT(ctx context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	lists := make([]machine.RTTSpec, len(p.parts))
	places := make([][]int, len(p.parts)) // where in what was asked
	for at, w := range e.Paths {
		i, err := p.index(w.Node)
		if err != nil {
			return nil, err
		}
		lists[i].Paths, places[i] = append(lists[i].Paths, w), append(places[i], at)
	}
	results := make([]probe.RTTResult, len(e.Paths))
	err := p.each(func(i int, x machine.Part) error {
		if len(lists[i].Paths) == 0 {
			return nil
		}
		lists[i].Count, lists[i].Interval, lists[i].Undisturbed = e.Count, e.Interval, e.Undisturbed
		got, err := x.MeasureRTT(ctx, lists[i])
		for k, r := range got {
			results[places[i][k]] = r // each machine has places of its own
		}
		return err
	})
	return results, err
}

// Receiver ports of trains, below the kernel's ephemeral range.
const (
	trainPort  = 20000
	trainPorts = 10000
	// tries bounds the ports to try, because programs on the node may use some.
	tries = 5
)

func (p *part) MeasureTrain(ctx context.Context, t machine.TrainSpec) (came probe.TrainResult, err error) {
	i, err := p.index(t.From.Node)
	if err != nil {
		return came, err
	}
	j, err := p.index(t.To.Node)
	if err != nil {
		return came, err
	}
	if i == j {
		came, err = p.parts[i].MeasureTrain(ctx, t)
		return came, p.fleet.nameError(i, err)
	}
	for range tries {
		t.Meeting = &probe.Meeting{Port: uint16(trainPort + rand.IntN(trainPorts)), Nonce: rand.Uint64()}
		if came, err = p.across(ctx, i, j, t); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return came, err
}

// across measures a train between machines. If one end fails, the other is cancelled.
func (p *part) across(ctx context.Context, from, to int, t machine.TrainSpec) (came probe.TrainResult, err error) {
	send, receive := t, t
	send.To.Node, receive.From.Node = "", ""
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		_, err := p.parts[from].MeasureTrain(ctx, send)
		return p.fleet.nameError(from, err)
	})
	both.Go(func() (err error) {
		came, err = p.parts[to].MeasureTrain(ctx, receive)
		return p.fleet.nameError(to, err)
	})
	return came, both.Wait()
}
