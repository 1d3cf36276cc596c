package babel

import (
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
)

// About is what the laboratory and its documentation know of babel.
var About = overlay.About{
	Name: Name, Recipe: Recipe, Options: func() overlay.Options { return new(Options) },
	Intervals: []overlay.Interval{{Key: "hello", Usage: "babel's hello interval"}, {Key: "update", Usage: "babel's update interval"}},
	Docs: overlay.Docs{
		For:     "for the path of the lowest round-trip time",
		Tunes:   "tunes babeld.",
		Takes:   "over the path of the lowest round-trip time: babeld, Babel's metric taken from measured round trips",
		Notices: "a silent link after about three hellos, latencies within seconds",
	},
}

// Options tune babeld. The defaults detect a link that died silently in about half a second.
type Options struct {
	// Hello is how often a node says hello on each link: a link that died silently is
	// given up after about four of them. At least 10ms.
	Hello unit.Duration `yaml:"hello" jsonschema:"default=150ms"`
	// Update is how often a node tells all its routes; changes are told at once.
	Update unit.Duration `yaml:"update" jsonschema:"default=1s"`
}

var _ overlay.Options = (*Options)(nil)

// least is what babeld counts in.
const least = unit.Duration(10 * time.Millisecond)

// Mistakes implements overlay.Options.
func (o *Options) Mistakes() (ps strict.Problems) {
	for _, i := range []struct {
		key string
		d   unit.Duration
	}{{"hello", o.Hello}, {"update", o.Update}} {
		if i.d < least {
			ps = append(ps, strict.Problem{Path: i.key, Message: "babeld counts in hundredths of a second", Hint: "give 10ms or more"})
		}
	}
	return ps
}

// New implements overlay.Options.
func (o *Options) New(in install.Installation) overlay.Overlay {
	return &Babel{program: in.Programs["babeld"], env: in.Env, options: *o}
}
