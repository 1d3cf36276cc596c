package overlay

import (
	"skerry/internal/base/strict"
	"skerry/internal/install"
)

// About is what topologies, commands, tests and the documentation know of an overlay. It
// stands in the overlay's own folder, and one line of package kinds names it: all else
// follows.
type About struct {
	// Name is how topologies call it.
	Name string
	// Recipe installs its program.
	Recipe install.Recipe
	// Options makes its options, to be read from a topology.
	Options func() Options
	// Intervals are those of its options that the benchmark of routing has flags for.
	Intervals []Interval
	Docs      Docs
}

// Options are a pointer to a struct with the tags of package strict: what a topology has under
// the overlay's name.
type Options interface {
	// Mistakes are those that tags do not tell; their paths are the keys.
	Mistakes() strict.Problems
	// New returns the overlay with an installation of the recipe.
	New(install.Installation) Overlay
}

// Interval is an option that is a duration.
type Interval struct{ Key, Usage string }

// Docs are what the documentation says of it.
type Docs struct {
	For   string // what it is chosen for: "for the path of the lowest round-trip time"
	Tunes string // what its options do: "tunes babeld."
	// Takes and Notices are its row in docs/routing.md: how packets go, and what it notices.
	Takes, Notices string
}
