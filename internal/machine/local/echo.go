package local

import (
	"context"
	"net/netip"

	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// there is an address that is measured to, and never from.
type there struct{ at netip.Addr }

func (t there) Addr() string          { return t.at.String() }
func (t there) Do(func() error) error { return machine.ErrOutside }

// Echo implements machine.Measures.
func (p *part) Echo(ctx context.Context, e machine.Echoes) ([]probe.RTTResult, error) {
	pairs := make([]probe.Pair, len(e.Ways))
	from := map[string]*host.Node{}
	for i, w := range e.Ways {
		if from[w.Node] == nil {
			n, err := p.node(w.Node)
			if err != nil {
				return nil, err
			}
			from[w.Node] = n
		}
		pairs[i] = probe.Pair{From: from[w.Node], To: there{w.To}}
	}
	if e.Undisturbed {
		return probe.MeasureUndisturbedRTT(ctx, pairs, e.Count, e.Interval)
	}
	return probe.MeasureRTT(ctx, pairs, e.Count, e.Interval)
}

// place is a node as it is reached on a link.
type place struct {
	*host.Node
	at netip.Addr
}

func (p place) Addr() string { return p.at.String() }

// Train implements machine.Measures.
func (p *part) Train(ctx context.Context, t machine.Train) (probe.TrainResult, error) {
	var ends [2]place
	for i, e := range []machine.End{t.From, t.To} {
		if e.Node == "" && t.Meeting != nil {
			continue
		}
		n, err := p.node(e.Node)
		if err != nil {
			return probe.TrainResult{}, err
		}
		ends[i] = place{n, e.Addr}
	}
	from, to := ends[0], ends[1]
	var arrivals []probe.Arrival
	var err error
	switch {
	case t.Meeting == nil:
		arrivals, err = probe.SendTrain(ctx, from, to, t.Packets)
	case to.Node != nil:
		arrivals, err = probe.ReceiveTrain(ctx, to, *t.Meeting, t.Packets)
	default:
		err = probe.DispatchTrain(ctx, from, t.To.Addr, *t.Meeting, t.Packets)
	}
	return probe.AnalyzeTrain(arrivals, t.Packets.Bytes), err
}
