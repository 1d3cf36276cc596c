package lab

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/topology"
)

// Places are the names of the nodes' machines, by node; nil where all are on this machine.
func (l *Lab) Places() map[string]string {
	var places map[string]string
	for _, n := range l.part.Facts().Nodes {
		if n.Machine == "" {
			continue
		}
		if places == nil {
			places = map[string]string{}
		}
		places[n.Name] = n.Machine
	}
	return places
}

// Exe is the skerry program as a node's machine has it.
func (l *Lab) Exe(node string) (string, error) {
	for _, n := range l.part.Facts().Nodes {
		if n.Name == node && n.Exe != "" {
			return n.Exe, nil
		}
	}
	return "", fmt.Errorf("%w in lab %s with a skerry program: %s", ErrNoNode, l.state.Name, node)
}

// Echo measures round trips over links, so many times each, from the one end; Measures say how.
func (l *Lab) Echo(ctx context.Context, links []Link, count int, interval time.Duration) ([]probe.RTTResult, error) {
	return l.echo(ctx, links, machine.Echoes{Count: count, Interval: interval, Undisturbed: true})
}

// Watch is Echo that takes no longer than the echoes do, and leaves none out: what the machine held up
// is among the round trips.
func (l *Lab) Watch(ctx context.Context, links []Link, count int, interval time.Duration) ([]probe.RTTResult, error) {
	return l.echo(ctx, links, machine.Echoes{Count: count, Interval: interval})
}

func (l *Lab) echo(ctx context.Context, links []Link, e machine.Echoes) ([]probe.RTTResult, error) {
	at := linksState{Links: l.Links()}.byID()
	for _, k := range links {
		to, err := l.address(k.B)
		if err != nil {
			return nil, err
		}
		if l.state.Numbered {
			_, to = endAddresses(linkNet, at[k.ID])
		}
		e.Ways = append(e.Ways, machine.Way{Node: k.A, To: to})
	}
	return l.part.Echo(ctx, e)
}

// Way is one direction of a link, to send trains of packets in: from its A, or back.
func (l *Lab) Way(k Link, back bool) (probe.Way, error) {
	from, to := machine.End{Node: k.A}, machine.End{Node: k.B}
	var err error
	if l.state.Numbered {
		from.Addr, to.Addr = endAddresses(linkNet, linksState{Links: l.Links()}.byID()[k.ID])
	} else if from.Addr, err = l.address(k.A); err == nil {
		to.Addr, err = l.address(k.B)
	}
	if back {
		from, to = to, from
	}
	return probe.Way{Link: k.ID, From: from.Node, To: to.Node, Send: func(ctx context.Context, t probe.Train) (probe.TrainResult, error) {
		return l.part.Train(ctx, machine.Train{From: from, To: to, Packets: t})
	}}, err
}

// EchoAll measures one round trip between every two nodes.
func (l *Lab) EchoAll(ctx context.Context) ([]probe.RTTResult, error) {
	e := machine.Echoes{Count: 1}
	for i, a := range l.nodes {
		for _, b := range l.nodes[i+1:] {
			to, err := l.address(b.Name())
			if err != nil {
				return nil, err
			}
			e.Ways = append(e.Ways, machine.Way{Node: a.Name(), To: to})
		}
	}
	return l.part.Echo(ctx, e)
}

func (l *Lab) address(node string) (netip.Addr, error) {
	h, err := l.Host(node)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(h.Addr())
}

// Apart says why a topology cannot stand on several machines with an engine asked for; nil when it
// can.
func Apart(t topology.Topology, engine string) error {
	if engine == emulator.Netem {
		return fmt.Errorf("%w: engine: %s shapes links within one machine alone; links between machines need %s", ErrInvalid, engine, emulator.Userspace)
	}
	if t.Encryption == topology.WireGuard {
		return fmt.Errorf("%w: encryption: %s is between nodes of one machine; packets between machines are encrypted without it", ErrInvalid, t.Encryption)
	}
	return nil
}
