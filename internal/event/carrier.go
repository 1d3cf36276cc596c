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

// newCarrierAction changes the chosen links by f, and whether their devices are down.
func newCarrierAction(links []linkTarget, text string, f func(link.Quality) link.Quality, pull bool) action {
	on, ok := newLinkAction(links, text, f).(*linkAction)
	if !ok {
		return nil
	}
	on.layer.carrierDown = make(map[string]bool, len(links))
	for _, l := range links {
		on.layer.carrierDown[l.id] = pull
	}
	return on
}

// applyCarrier takes the devices of links down or up where they are not as they should be.
func (n *LinkLayers) applyCarrier(touched []direction) error {
	var ids []string
	for _, d := range touched {
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		pulled := false
		for _, l := range n.layers {
			if pull, ok := l.carrierDown[id]; ok {
				pulled = pull
			}
		}
		if pulled == n.carrierDown[id] {
			continue
		}
		if err := n.setter.Carrier(id, !pulled); err != nil {
			return fmt.Errorf("carrier: %w", err)
		}
		n.carrierDown[id] = pulled
	}
	return nil
}
