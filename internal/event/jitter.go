package event

import (
	"math/rand/v2"

	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/record"
)

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
