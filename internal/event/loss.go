package event

import (
	"math/rand/v2"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/internal/topology"
)

var lossKind = Kind{
	Name: "loss", Says: "makes links lose packets.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs: Docs{SectionLinks, []Row{
		{Examples: []string{`{of: Pune, add: 5%}`, `{set: 1%}`}, Says: `losses combine: 10 % and 10 % lose 19 %`},
		{Examples: []string{`{of: Pune, set: {burst: {mean: 2%, length: 8}}}`}, Says: `losses come in [bursts](#loss-in-bursts) of eight packets on average`},
	}},
	Offers: []Offer{
		{ID: "lose", Title: "Lose packets", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "add", Label: "share", Value: "5%"}},
	},
	spec: func() spec { return new(Loss) },
}

// Loss makes links lose a share of the packets, each drawn on its own: set or add. Losses
// that are added are independent of each other: 10 % and 10 % lose 19 %.
type Loss struct {
	Links `yaml:",inline"`
	// Set is what they lose then: a share of packets, each drawn on its own, or bursts.
	Set *topology.LossSpec `yaml:"set" json:"set,omitempty"`
	// Add is lost of what would have arrived.
	Add *unit.Fraction `yaml:"add" json:"add,omitempty"`
}

// Alternatives: the loss changes in one way.
func (Loss) Alternatives() [][]string { return [][]string{{"set", "add"}, {"between", "of"}} }

func (l *Loss) check(s Stage, fail failure) {
	l.Links.check(s, fail)
	if l.Set == nil && l.Add == nil {
		fail("", "give set: 5% or add: 5%", "nothing says what share is lost")
	}
	if l.Set != nil {
		l.Links.add(s, "set", "write add: 5%", fail)
	}
}

func (l *Loss) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	links := l.Links.draw(s, turn, busy, r)
	if l.Set != nil {
		return newOnLinks(links, "loss of %s set to "+strings.ReplaceAll(l.Set.String(), "%", " %%"), l.Set.Apply)
	}
	return newOnLinks(links, "loss of %s + "+percent(*l.Add), func(q link.Quality) link.Quality {
		q.Loss = 1 - (1-q.Loss)*(1-float64(*l.Add))
		return q
	})
}

// percent is a share within a text that names are filled into.
func percent(f unit.Fraction) string { return number(100*float64(f)) + " %%" }
