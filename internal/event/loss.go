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
	Name: "loss", Summary: "makes links lose packets.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs: Docs{SectionLinks, []Row{
		{Examples: []string{`{of: Pune, add: 5%}`, `{set: 1%}`}, Text: `losses combine: 10 % and 10 % lose 19 %`},
		{Examples: []string{`{of: Pune, set: {burst: {mean: 2%, length: 8}}}`}, Text: `losses come in [bursts](#loss-in-bursts) of eight packets on average`},
	}},
	Offers: []Offer{
		{ID: "lose", Title: "Lose packets", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "add", Label: "share", Value: "5%"}},
	},
	newSpec: func() kindSpec { return new(Loss) },
}

// Loss makes links lose a share of the packets, each drawn on its own: set or add. Losses
// that are added are independent of each other: 10 % and 10 % lose 19 %.
type Loss struct {
	LinkSelector `yaml:",inline"`
	// Set is what they lose then: a share of packets, each drawn on its own, or bursts.
	Set *topology.LossSpec `yaml:"set" json:"set,omitempty"`
	// Add is lost of what would have arrived.
	Add *unit.Fraction `yaml:"add" json:"add,omitempty"`
}

// Alternatives: the loss changes in one way.
func (Loss) Alternatives() [][]string { return [][]string{{"set", "add"}, {"between", "of"}} }

func (l *Loss) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Set == nil && l.Add == nil {
		fail("", "give set: 5% or add: 5%", "nothing says what share is lost")
	}
	if l.Set != nil {
		l.LinkSelector.rejectRealLinks(s, "set", "write add: 5%", fail)
	}
}

func (l *Loss) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	links := l.LinkSelector.draw(s, turn, busy, r)
	if l.Set != nil {
		return newLinkAction(links, "loss of %s set to "+strings.ReplaceAll(l.Set.String(), "%", " %%"), l.Set.Apply)
	}
	return newLinkAction(links, "loss of %s + "+formatPercent(*l.Add), func(q link.Quality) link.Quality {
		q.Loss = 1 - (1-q.Loss)*(1-float64(*l.Add))
		return q
	})
}

// formatPercent is a share within a text that names are filled into.
func formatPercent(f unit.Fraction) string { return formatFactor(100*float64(f)) + " %%" }
