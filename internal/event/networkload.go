package event

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"skerry/internal/base/unit"
	"skerry/internal/record"
)

var networkLoadKind = Kind{
	Name: "network_load", Summary: "sends data between nodes, as iperf3 does.",
	Effect: record.Effect{On: record.OnStreams, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{from: Seoul, to: [Pune, Dubai], rate: 100mbit, protocol: tcp}`},
		Text: `streams go over the links that the database uses. The rate is of payload`}}},
	newSpec: func() kindSpec { return new(NetworkLoad) },
}

// NetworkLoad sends data from nodes to others, as iperf3 does: it fills the same links as
// the database.
type NetworkLoad struct {
	// From are the nodes that send, To those that they send to: each to each.
	From Names `yaml:"from" json:"from" jsonschema:"required"`
	// To are the nodes that they send to: each to each, but not to itself.
	To Names `yaml:"to" json:"to" jsonschema:"required"`
	// Rate is that of the payload of each stream; unlimited is as fast as it goes.
	Rate unit.Bandwidth `yaml:"rate" json:"rate" jsonschema:"required,example=100mbit"`
	// Protocol is tcp, which gives way to others, or udp, which does not.
	Protocol string `yaml:"protocol" json:"protocol" jsonschema:"default=tcp,enum=tcp,enum=udp"`
}

func (l *NetworkLoad) check(s Layout, fail failure) {
	for key, names := range map[string]Names{"from": l.From, "to": l.To} {
		if _, unknown := s.resolveNames(names); unknown != "" {
			fail(key, s.suggestName(unknown), "there is no node or site %q", unknown)
			return
		}
	}
	if l.Protocol == "udp" && l.Rate == 0 {
		fail("rate", "give a rate, such as 100mbit", "datagrams as fast as they go would only fill the machine's memory")
	}
	linked := map[[2]string]bool{}
	for _, x := range s.Topology.Links {
		linked[[2]string{x.A, x.B}], linked[[2]string{x.B, x.A}] = true, true
	}
	streams := l.streams(s)
	for _, x := range streams {
		if !linked[x] {
			fail("to", "", "there is no link between %s and %s, and nodes do not forward for others", x[0], x[1])
			return
		}
	}
	if len(streams) == 0 {
		fail("to", "", "there is nobody to send to")
	}
}

// streams are the pairs of who sends and who takes.
func (l *NetworkLoad) streams(s Layout) (pairs [][2]string) {
	from, _ := s.resolveNames(l.From)
	to, _ := s.resolveNames(l.To)
	for _, a := range from {
		for _, b := range to {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	return pairs
}

func (l *NetworkLoad) draw(s Layout, _ int, _ map[string]bool, _ *rand.Rand) action {
	rate := l.Rate.String()
	if l.Rate == 0 {
		rate = "as much as passes"
	}
	return &trafficAction{programSet: newPrograms(), streams: l.streams(s), protocol: l.Protocol, bps: int64(l.Rate), rate: rate}
}

// trafficAction is data on its way.
type trafficAction struct {
	*programSet
	streams  [][2]string
	protocol string
	bps      int64
	rate     string
}

func (l *trafficAction) targets() []string {
	names := make([]string, len(l.streams))
	for i, x := range l.streams {
		names[i] = x[0] + ">" + x[1]
	}
	return names
}

func (l *trafficAction) what() string {
	return fmt.Sprintf("%s of %s load on %s", l.rate, l.protocol, joinNames(l.targets(), "streams"))
}

func (l *trafficAction) apply(ctx context.Context, w *Testbed, _ *progress) error {
	sinks := map[string]string{}
	for _, x := range l.streams {
		if sinks[x[1]] != "" {
			continue
		}
		h, err := w.Host(x[1])
		if err != nil {
			return err
		}
		port, err := l.start(ctx, w, x[1], "sink", l.protocol, h.Addr())
		if err != nil {
			return err
		}
		sinks[x[1]] = net.JoinHostPort(h.Addr(), port)
	}
	for _, x := range l.streams {
		if _, err := l.start(ctx, w, x[0], "send", l.protocol, sinks[x[1]], strconv.FormatInt(l.bps, 10)); err != nil {
			return err
		}
	}
	return nil
}

func (l *trafficAction) revert(ctx context.Context, _ *Testbed, _ *progress) error {
	return l.stop(ctx)
}
