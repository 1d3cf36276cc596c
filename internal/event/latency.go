package event

import (
	"math"
	"math/rand/v2"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/record"
)

var latencyKind = Kind{
	Name: "latency", Summary: "changes how long packets take.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs:   Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, scale: 3}`, `{between: [Pune, Seoul], add: 20ms}`, `{set: 5ms}`}, Text: `the value is of one way: a round trip changes by twice as much. Of [real links](machines.md#real-links-and-their-copy) events only add`}}},
	Offers: []Offer{
		{ID: "slow", Title: "Multiply latency", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "scale", Label: "times", Value: "3", Number: true}},
		{ID: "add", Title: "Add latency", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "add", Label: "one way", Value: "50ms"}},
		{ID: "slowall", Title: "Multiply latency of nodes", On: record.OnNodes, Targets: "of", Amount: &Amount{Key: "scale", Label: "times", Value: "3", Number: true}},
	},
	newSpec: func() kindSpec { return new(Latency) },
}

// Latency changes the one-way delay of links: exactly one of set, add and scale. Several at
// once add up, in the order in which they came.
type Latency struct {
	LinkSelector `yaml:",inline"`
	// Set is the latency they have then, one way.
	Set *unit.Duration `yaml:"set" json:"set,omitempty"`
	// Add is what each direction takes longer.
	Add *unit.Duration `yaml:"add" json:"add,omitempty"`
	// Scale multiplies it.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
}

// Alternatives: the latency changes in one way.
func (Latency) Alternatives() [][]string {
	return [][]string{{"set", "add", "scale"}, {"between", "of"}}
}

func (l *Latency) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Set == nil && l.Add == nil && l.Scale == nil {
		fail("", "give set: 40ms, add: 20ms or scale: 3", "nothing says what the latency becomes")
	}
	if l.Set != nil {
		l.LinkSelector.rejectRealLinks(s, "set", "write add: 20ms", fail)
	}
	if l.Scale != nil {
		l.LinkSelector.rejectRealLinks(s, "scale", "write add: 20ms", fail)
	}
	if l.Set != nil || l.Add != nil || l.Scale != nil {
		_, change := l.change()
		l.LinkSelector.checkQuality(s, change, fail)
	}
}

func (l *Latency) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	text, change := l.change()
	return newLinkAction(l.LinkSelector.draw(s, turn, busy, r), text, change)
}

func (l *Latency) change() (string, func(link.Quality) link.Quality) {
	switch {
	case l.Set != nil:
		return "latency of %s set to " + l.Set.String(), func(q link.Quality) link.Quality {
			q.Latency = l.Set.Duration()
			return q
		}
	case l.Add != nil:
		return "latency of %s + " + l.Add.String(), func(q link.Quality) link.Quality {
			q.Latency += l.Add.Duration()
			return q
		}
	}
	return "latency of %s x " + formatFactor(*l.Scale), func(q link.Quality) link.Quality {
		q.Latency = time.Duration(math.Round(float64(q.Latency) * *l.Scale))
		return q
	}
}
