package event

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/internal/topology"
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

var bandwidthKind = Kind{
	Name: "bandwidth", Summary: "changes how fast links are.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, set: 10mbit}`, `{scale: 0.5}`}}}},
	newSpec: func() kindSpec { return new(BandwidthSpec) },
}

// BandwidthSpec changes how fast links are: set or scale. The queue in front of the link
// follows, unless the topology gives it a length.
type BandwidthSpec struct {
	LinkSelector `yaml:",inline"`
	// Set is the bandwidth they have then.
	Set *unit.Bandwidth `yaml:"set" json:"set,omitempty"`
	// Scale multiplies it; a link without a limit stays without.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000"`
}

// Alternatives: the bandwidth changes in one way.
func (BandwidthSpec) Alternatives() [][]string {
	return [][]string{{"set", "scale"}, {"between", "of"}}
}

func (b *BandwidthSpec) check(s Layout, fail failure) {
	b.LinkSelector.check(s, fail)
	if b.Set == nil && b.Scale == nil {
		fail("", "give set: 10mbit or scale: 0.5", "nothing says what the bandwidth becomes")
	}
	if b.Scale != nil { // set bounds a real link, too
		b.LinkSelector.rejectRealLinks(s, "scale", "write set: 10mbit", fail)
	}
}

func (b *BandwidthSpec) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	links := b.LinkSelector.draw(s, turn, busy, r)
	if b.Set != nil {
		return newLinkAction(links, "bandwidth of %s set to "+b.Set.String(), func(q link.Quality) link.Quality {
			q.Bandwidth = int64(*b.Set)
			return q
		})
	}
	return newLinkAction(links, "bandwidth of %s x "+formatFactor(*b.Scale), func(q link.Quality) link.Quality {
		if q.Bandwidth > 0 {
			q.Bandwidth = max(1, int64(math.Round(float64(q.Bandwidth)**b.Scale)))
		}
		return q
	})
}

// formatFactor writes a factor.
func formatFactor(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

var jitterKind = Kind{
	Name: "jitter", Summary: "spreads the latency of links around its mean.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, set: 2ms, distribution: pareto}`, `{add: 1ms}`}}}},
	newSpec: func() kindSpec { return new(Jitter) },
}

// Jitter spreads the latency of links around its mean: set or add. What is added
// is added to the spread: the standard deviation, or the half-width of a uniform one.
type Jitter struct {
	LinkSelector `yaml:",inline"`
	// Set is the spread that they have then.
	Set *unit.Duration `yaml:"set" json:"set,omitempty"`
	// Add is what the spread grows by.
	Add *unit.Duration `yaml:"add" json:"add,omitempty"`
	// Distribution is the shape of it; left out, it stays as it is.
	Distribution link.Distribution `yaml:"distribution" json:"distribution,omitempty" jsonschema:"enum=normal,enum=uniform,enum=pareto,enum=paretonormal"`
}

// Alternatives: the jitter changes in one way.
func (Jitter) Alternatives() [][]string { return [][]string{{"set", "add"}, {"between", "of"}} }

func (j *Jitter) check(s Layout, fail failure) {
	j.LinkSelector.check(s, fail)
	if j.Set == nil && j.Add == nil {
		fail("", "give set: 2ms or add: 2ms", "nothing says what the jitter becomes")
	}
	if j.Set != nil {
		j.LinkSelector.rejectRealLinks(s, "set", "write add: 2ms", fail)
	}
	j.LinkSelector.checkQuality(s, j.change, fail)
}

func (j *Jitter) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	text := "jitter of %s"
	if j.Set != nil {
		text += " set to " + j.Set.String()
	} else {
		text += " + " + j.Add.String()
	}
	return newLinkAction(j.LinkSelector.draw(s, turn, busy, r), text, j.change)
}

func (j *Jitter) change(q link.Quality) link.Quality {
	switch {
	case j.Set != nil:
		q.Jitter = j.Set.Duration()
	case j.Add != nil:
		q.Jitter += j.Add.Duration()
	}
	if j.Distribution != "" {
		q.Distribution = j.Distribution
	}
	return q
}

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

// linkAction is the action of every event that changes what links do to packets.
type linkAction struct {
	links []linkTarget
	text  string
	layer layer
}

// newLinkAction changes the chosen links by f.
func newLinkAction(links []linkTarget, text string, f func(link.Quality) link.Quality) action {
	if len(links) == 0 {
		return nil
	}
	a := &linkAction{links: links, text: text, layer: layer{changes: map[direction]func(link.Quality) link.Quality{}}}
	for _, l := range links {
		for _, d := range l.directions {
			a.layer.changes[d] = f
		}
	}
	return a
}

func (a *linkAction) targets() []string { return linkIDs(a.links) }

func linkIDs(links []linkTarget) []string {
	ids := make([]string, len(links))
	for i, l := range links {
		ids[i] = l.id
	}
	return ids
}

// what fills the names of the links into the text.
func (a *linkAction) what() string {
	names := joinNames(a.targets(), "links")
	if len(a.links) <= 4 && len(a.links) > 0 && len(a.links[0].directions) == 1 {
		names += ", one way"
	}
	return fmt.Sprintf(a.text, names)
}

func (a *linkAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	u, err := w.Links.addLayer(ctx, &a.layer)
	p.setLinkUpdate(u)
	return err
}

func (a *linkAction) revert(ctx context.Context, w *Testbed, p *progress) error {
	u, err := w.Links.removeLayer(ctx, &a.layer)
	p.setLinkUpdate(u)
	return err
}
