package event

import (
	"math/rand/v2"

	"skerry/internal/record"
)

var linkDownKind = Kind{
	Name: "link_down", Summary: "takes links down, silently or so that their nodes notice.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs: Docs{SectionLinks, []Row{
		{Examples: []string{`{between: [Pune, Seoul]}`, `{choose: next}`}, Text: `packets are dropped silently, as by a radio link that vanished`},
		{Examples: []string{`{between: [Pune, Seoul], mode: carrier}`}, Text: `the devices at both ends go down too, as when a cable is pulled out: routing sees it at once`},
	}},
	Offers: []Offer{
		{ID: "cut", Title: "Cut links", On: record.OnLinks, Targets: "ids"},
		{ID: "isolate", Title: "Cut nodes off", On: record.OnNodes, Targets: "of"},
	},
	newSpec: func() kindSpec { return new(LinkDown) },
}

// How a link goes down.
const (
	modeSilent  = "silent"
	modeCarrier = "carrier"
)

// LinkDown takes links down.
type LinkDown struct {
	LinkSelector `yaml:",inline"`
	// Mode is how: silent drops every packet while the devices at both ends stay up, as a
	// radio link vanishes; carrier takes the devices down too, as pulling out a cable does,
	// and whatever routes there sees it at once.
	Mode string `yaml:"mode" json:"mode" jsonschema:"default=silent,enum=silent,enum=carrier"`
}

func (l *LinkDown) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Mode == modeCarrier && l.OneWay {
		fail("one_way", "leave out one_way, or write mode: silent", "a device that is down sends and receives nothing")
	}
}

func (l *LinkDown) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	links := l.LinkSelector.draw(s, turn, busy, r)
	if l.Mode == modeCarrier {
		return newCarrierAction(links, "%s down, carrier lost", setDown(true), true)
	}
	return newLinkAction(links, "%s down", setDown(true))
}
