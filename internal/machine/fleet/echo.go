package fleet

import (
	"context"

	"skerry/internal/link/probe"
	"skerry/internal/machine"
)

// Echo implements machine.Measures: every machine measures from its nodes.
func (p *part) Echo(ctx context.Context, e machine.Echoes) ([]probe.RTTResult, error) {
	lists := make([]machine.Echoes, len(p.parts))
	places := make([][]int, len(p.parts)) // where in what was asked
	for at, w := range e.Ways {
		i, err := p.index(w.Node)
		if err != nil {
			return nil, err
		}
		lists[i].Ways, places[i] = append(lists[i].Ways, w), append(places[i], at)
	}
	results := make([]probe.RTTResult, len(e.Ways))
	err := p.each(func(i int, x machine.Part) error {
		if len(lists[i].Ways) == 0 {
			return nil
		}
		lists[i].Count, lists[i].Interval, lists[i].Undisturbed = e.Count, e.Interval, e.Undisturbed
		got, err := x.Echo(ctx, lists[i])
		for k, r := range got {
			results[places[i][k]] = r // each machine has places of its own
		}
		return err
	})
	return results, err
}
