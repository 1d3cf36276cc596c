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

// NodeMachines maps nodes to the names of their machines; nil if all are on this machine.
func (l *Lab) NodeMachines() map[string]string {
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

// Exe is the path of the skerry program on a node's machine.
func (l *Lab) Exe(node string) (string, error) {
	for _, n := range l.part.Facts().Nodes {
		if n.Name == node && n.Exe != "" {
			return n.Exe, nil
		}
	}
	return "", fmt.Errorf("%w in lab %s with a skerry program: %s", ErrNoNode, l.state.Name, node)
}

// Echo measures count round trips over each link, from its first end, and excludes disturbances by the machine.
func (l *Lab) Echo(ctx context.Context, links []Link, count int, interval time.Duration) ([]probe.RTTResult, error) {
	return l.echo(ctx, links, machine.RTTSpec{Count: count, Interval: interval, Undisturbed: true})
}

// EchoContinuously is Echo in bounded time and without exclusions: delays by the machine are included.
func (l *Lab) EchoContinuously(ctx context.Context, links []Link, count int, interval time.Duration) ([]probe.RTTResult, error) {
	return l.echo(ctx, links, machine.RTTSpec{Count: count, Interval: interval})
}

func (l *Lab) echo(ctx context.Context, links []Link, e machine.RTTSpec) ([]probe.RTTResult, error) {
	at := linksState{Links: l.Links()}.byID()
	for _, k := range links {
		to, err := l.hostAddress(k.B)
		if err != nil {
			return nil, err
		}
		if l.state.Numbered {
			_, to = endAddresses(linkNet, at[k.ID])
		}
		e.Paths = append(e.Paths, machine.Path{Node: k.A, To: to})
	}
	return l.part.MeasureRTT(ctx, e)
}

// ProbeWay is one direction of a link for packet trains: from its A, or back.
func (l *Lab) ProbeWay(k Link, back bool) (probe.Way, error) {
	from, to := machine.TrainEnd{Node: k.A}, machine.TrainEnd{Node: k.B}
	var err error
	if l.state.Numbered {
		from.Addr, to.Addr = endAddresses(linkNet, linksState{Links: l.Links()}.byID()[k.ID])
	} else if from.Addr, err = l.hostAddress(k.A); err == nil {
		to.Addr, err = l.hostAddress(k.B)
	}
	if back {
		from, to = to, from
	}
	return probe.Way{Link: k.ID, From: from.Node, To: to.Node, Send: func(ctx context.Context, t probe.Train) (probe.TrainResult, error) {
		return l.part.MeasureTrain(ctx, machine.TrainSpec{From: from, To: to, Packets: t})
	}}, err
}

// EchoAll measures one round trip between every two nodes.
func (l *Lab) EchoAll(ctx context.Context) ([]probe.RTTResult, error) {
	e := machine.RTTSpec{Count: 1}
	for i, a := range l.nodes {
		for _, b := range l.nodes[i+1:] {
			to, err := l.hostAddress(b.Name())
			if err != nil {
				return nil, err
			}
			e.Paths = append(e.Paths, machine.Path{Node: a.Name(), To: to})
		}
	}
	return l.part.MeasureRTT(ctx, e)
}

func (l *Lab) hostAddress(node string) (netip.Addr, error) {
	h, err := l.Host(node)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(h.Addr())
}

// CheckMultiMachine reports why a topology cannot span several machines with the requested engine.
func CheckMultiMachine(t topology.Topology, engine string) error {
	if engine == emulator.Netem {
		return fmt.Errorf("%w: engine %s cannot shape links between machines, use %s", ErrInvalid, engine, emulator.Userspace)
	}
	if t.Encryption == topology.WireGuard {
		return fmt.Errorf("%w: encryption %s works within one machine only; packets between machines are encrypted anyway", ErrInvalid,
			t.Encryption)
	}
	return nil
}
