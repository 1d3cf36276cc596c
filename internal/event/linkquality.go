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
	Name: "latency", Summary: "changes the latency of links.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs: Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, scale: 3}`, `{between: [Pune, Seoul], add: 20ms}`, `{set: 5ms}`},
		Text: `one-way value: a round trip changes by twice as much. On [real links](machines.md#real-links-and-their-emulated-copy) only add works`}}},
	Offers: []Offer{
		{ID: "slow", Title: "Multiply latency", On: record.OnLinks, Targets: "ids",
			Amount: &Amount{Key: "scale", Label: "times", Value: "3", Number: true}},
		{ID: "add", Title: "Add latency", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "add", Label: "one way", Value: "50ms"}},
		{ID: "slowall", Title: "Multiply latency of nodes", On: record.OnNodes, Targets: "of",
			Amount: &Amount{Key: "scale", Label: "times", Value: "3", Number: true}},
	},
	newSpec: func() kindSpec { return new(Latency) },
}

// Latency changes the one-way delay of links by one of set, add and scale. Simultaneous changes
// apply in the order of their start.
type Latency struct {
	LinkSelector `yaml:",inline"`
	// Set is the new one-way latency.
	Set *unit.Duration `yaml:"set" json:"set,omitempty"`
	// Add is added to the latency of each direction.
	Add *unit.Duration `yaml:"add" json:"add,omitempty"`
	// Scale multiplies the latency.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"minimum=0,maximum=1000"`
}

func (Latency) Alternatives() [][]string {
	return [][]string{{"set", "add", "scale"}, {"between", "of"}}
}

func (l *Latency) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Set == nil && l.Add == nil && l.Scale == nil {
		fail("", "give set: 40ms, add: 20ms or scale: 3", "new latency missing")
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
	Name: "bandwidth", Summary: "changes the bandwidth of links.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, set: 10mbit}`, `{scale: 0.5}`}}}},
	newSpec: func() kindSpec { return new(BandwidthSpec) },
}

// BandwidthSpec changes the bandwidth of links by set or scale. The queue in front of the link
// scales with it, unless the topology sets its length.
type BandwidthSpec struct {
	LinkSelector `yaml:",inline"`
	// Set is the new bandwidth.
	Set *unit.Bandwidth `yaml:"set" json:"set,omitempty"`
	// Scale multiplies the bandwidth. A link without a limit stays unlimited.
	Scale *float64 `yaml:"scale" json:"scale,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1000"`
}

func (BandwidthSpec) Alternatives() [][]string {
	return [][]string{{"set", "scale"}, {"between", "of"}}
}

func (b *BandwidthSpec) check(s Layout, fail failure) {
	b.LinkSelector.check(s, fail)
	if b.Set == nil && b.Scale == nil {
		fail("", "give set: 10mbit or scale: 0.5", "new bandwidth missing")
	}
	if b.Scale != nil { // set limits a real link, too
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

func formatFactor(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

var jitterKind = Kind{
	Name: "jitter", Summary: "changes the jitter of links.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Changed},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, set: 2ms, distribution: pareto}`, `{add: 1ms}`}}}},
	newSpec: func() kindSpec { return new(Jitter) },
}

// Jitter changes how far the latency of links spreads around its mean, by set or add. The spread is
// the standard deviation, or the half-width of a uniform distribution.
type Jitter struct {
	LinkSelector `yaml:",inline"`
	// Set is the new spread.
	Set *unit.Duration `yaml:"set" json:"set,omitempty"`
	// Add is added to the spread.
	Add *unit.Duration `yaml:"add" json:"add,omitempty"`
	// Distribution is the new shape. By default the shape does not change.
	Distribution link.Distribution `yaml:"distribution" json:"distribution,omitempty" jsonschema:"enum=normal,enum=uniform,enum=pareto,enum=paretonormal"`
}

func (Jitter) Alternatives() [][]string { return [][]string{{"set", "add"}, {"between", "of"}} }

func (j *Jitter) check(s Layout, fail failure) {
	j.LinkSelector.check(s, fail)
	if j.Set == nil && j.Add == nil {
		fail("", "give set: 2ms or add: 2ms", "new jitter missing")
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
		{Examples: []string{`{of: Pune, add: 5%}`, `{set: 1%}`}, Text: `losses are independent: 10 % and 10 % lose 19 %`},
		{Examples: []string{`{of: Pune, set: {burst: {mean: 2%, length: 8}}}`}, Text: `[bursts](#loss-in-bursts) of eight packets on average`},
	}},
	Offers: []Offer{
		{ID: "lose", Title: "Lose packets", On: record.OnLinks, Targets: "ids", Amount: &Amount{Key: "add", Label: "share", Value: "5%"}},
	},
	newSpec: func() kindSpec { return new(Loss) },
}

// Loss makes links lose packets, by set or add. Added losses are independent: 10 % and 10 % lose 19
// %.
type Loss struct {
	LinkSelector `yaml:",inline"`
	// Set is the new loss: a share of independently drawn packets, or bursts.
	Set *topology.LossSpec `yaml:"set" json:"set,omitempty"`
	// Add is the share lost of the packets that would have arrived.
	Add *unit.Fraction `yaml:"add" json:"add,omitempty"`
}

func (Loss) Alternatives() [][]string { return [][]string{{"set", "add"}, {"between", "of"}} }

func (l *Loss) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Set == nil && l.Add == nil {
		fail("", "give set: 5% or add: 5%", "new loss missing")
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

func formatPercent(f unit.Fraction) string { return formatFactor(100*float64(f)) + " %%" }

// linkAction changes the settings of links.
type linkAction struct {
	links []linkTarget
	text  string
	layer layer
}

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
