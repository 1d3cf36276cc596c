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
		return probe.Undisturbed(ctx, pairs, e.Count, e.Interval)
	}
	return probe.RTT(ctx, pairs, e.Count, e.Interval)
}
