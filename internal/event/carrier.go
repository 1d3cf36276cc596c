package event

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"skerry/internal/link"
)

// How a link goes down.
const (
	silently  = "silent"
	byCarrier = "carrier"
)

// LinkDown takes links down.
type LinkDown struct {
	Links `yaml:",inline"`
	// Mode is how: silent drops every packet while the devices at both ends stay up, as a
	// radio link vanishes; carrier takes the devices down too, as pulling out a cable does,
	// and whatever routes there sees it at once.
	Mode string `yaml:"mode" json:"mode" jsonschema:"default=silent,enum=silent,enum=carrier"`
}

func (l *LinkDown) check(s Stage, fail failure) {
	l.Links.check(s, fail)
	if l.Mode == byCarrier && l.OneWay {
		fail("one_way", "leave out one_way, or write mode: silent", "a device that is down sends and receives nothing")
	}
}

func (l *LinkDown) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	links := l.Links.draw(s, turn, busy, r)
	if l.Mode == byCarrier {
		return newPulled(links, "%s down, carrier lost", setDown(true), true)
	}
	return newOnLinks(links, "%s down", setDown(true))
}

func (l *LinkDown) limit(s Stage) int { return l.Links.limit(s) }

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
