package event

import (
	"math"
	"math/rand/v2"
	"strconv"

	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/record"
)

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
