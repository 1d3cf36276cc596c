package event

import (
	"fmt"
	"slices"

	"skerry/internal/link"
)

func setDown(down bool) func(link.Quality) link.Quality {
	return func(q link.Quality) link.Quality {
		q.Down = down
		return q
	}
}

// newPulled changes the chosen links by f, and whether their devices are down.
func newPulled(links []chosen, text string, f func(link.Quality) link.Quality, pull bool) action {
	on, ok := newOnLinks(links, text, f).(*onLinks)
	if !ok {
		return nil
	}
	on.layer.pull = make(map[string]bool, len(links))
	for _, l := range links {
		on.layer.pull[l.id] = pull
	}
	return on
}

// carry takes the devices of links down or up where they are not as they should be.
func (n *Net) carry(touched []direction) error {
	var ids []string
	for _, d := range touched {
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		pulled := false
		for _, l := range n.layers {
			if pull, ok := l.pull[id]; ok {
				pulled = pull
			}
		}
		if pulled == n.pulled[id] {
			continue
		}
		if err := n.setter.Carrier(id, !pulled); err != nil {
			return fmt.Errorf("carrier: %w", err)
		}
		n.pulled[id] = pulled
	}
	return nil
}
