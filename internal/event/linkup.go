package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var linkUpKind = Kind{
	Name: "link_up", Summary: "lets packets pass again on links that are down, whatever brought them down.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Up},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{between: [Pune, Seoul]}`}, Text: `all links between the two pass packets again, whatever brought them down; with ids: [NAME] only one of them`}}},
	newSpec: func() kindSpec { return new(linkUp) },
}

// linkUp lets packets pass, over what came before it; what comes after it may take the
// link down again.
type linkUp struct {
	LinkSelector `yaml:",inline"`
}

func (l *linkUp) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newCarrierAction(l.LinkSelector.draw(s, turn, busy, r), "%s up", setDown(false), false)
}
