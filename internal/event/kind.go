package event

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"skerry/internal/record"
)

var (
	// errUnavailable means that this machine or database does not support the event.
	errUnavailable = errors.New("unavailable")
	// errState means that a node is not in the state that the event needs.
	errState = errors.New("wrong state")
	// errEnded means that a process of the event ended too early.
	errEnded = errors.New("ended unexpectedly")
)

// Kind describes a kind of event. What an event of the kind does is in its kindSpec.
type Kind struct {
	// Name is the key in an experiment. Summary is the sentence about the key; it continues after
	// the name.
	Name, Summary string
	// Effect is what the event does to its targets.
	Effect record.Effect
	// Docs is the kind's part of docs/events.md.
	Docs Docs
	// Offers are the forms in which the dashboard fires the kind.
	Offers []Offer
	// HeldState names the state of the targets if a node cannot enter it twice.
	HeldState string
	// Preparation names what must exist before the database starts. Such a kind cannot be fired.
	Preparation string
	// NeedsDisks means that the machine must be able to limit the disks of nodes.
	NeedsDisks bool

	newSpec func() kindSpec
}

// kindSpec holds the settings of one event of a kind.
type kindSpec interface {
	check(s Layout, fail failure)
	// draw selects the targets of an occurrence, numbered from 0, without the busy ones. It returns
	// nil if no target is eligible.
	draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action
}

// Optional interfaces of a kindSpec.
type (
	// limited ends after a number of occurrences; 0 means never.
	limited interface{ limit(s Layout) int }
	// repeatable reports whether every occurrence has the same targets.
	repeatable interface{ selectsAll() bool }
	// databaseDependent reports what the database cannot do. e is the whole entry.
	databaseDependent interface {
		checkDatabase(c databaseCheck, e Event, fail failure)
	}
	// undoable reports whether the event can be reverted, where that depends on its settings, and
	// what to add if not.
	undoable interface{ undoable() (ok bool, hint string) }
	joiner   interface{ joiningNodes(s Layout) []string }
	leaver   interface{ leavingNodes(s Layout) []string }
	// diskReserver needs disks of the returned sizes, in bytes, before anything starts on the
	// nodes.
	diskReserver interface {
		diskSizes(s Layout) map[string]int64
	}
)

// Type is the type of the kind's settings.
func (k Kind) Type() reflect.Type { return reflect.TypeOf(k.newSpec()).Elem() }

// revertible reports whether events of the kind can be reverted. Of settled changes only joining
// and leaving can.
func (k Kind) revertible() bool {
	return !k.Effect.Settles || k.Effect.Member.Opposite() != k.Effect.Member
}

// permanent reports whether the end of the trial leaves the change in force, as for a member that
// left.
func (k Kind) permanent() bool { return k.Effect.Member != "" }

// failure reports a mistake at a key of the event's kind, "" for the kind as a whole.
type failure func(key, hint, format string, args ...any)

// action is one occurrence of an event. revert may follow an apply that failed half-way; it undoes
// what was done.
type action interface {
	targets() []string
	// what is a short description, such as "latency of Pune~Sydney x 3".
	what() string
	apply(ctx context.Context, w *Testbed, p *progress) error
	revert(ctx context.Context, w *Testbed, p *progress) error
}

// fragile is an action that can fail after it was applied, for example because a process dies.
type fragile interface {
	ended() <-chan struct{}
	err() error
}

// outsideAction is an action outside the lab. Its apply ends with the trial. Its revert has a time limit
// of its own: removing the lab does not undo it.
type outsideAction interface{ revertLimit() time.Duration }

// kinds lists all kinds, in the order of messages and documents.
var kinds = []Kind{
	latencyKind,
	bandwidthKind,
	lossKind,
	jitterKind,
	linkDownKind,
	linkUpKind,
	linkFlapKind,
	partitionKind,
	killKind,
	stopKind,
	startKind,
	restartKind,
	pauseKind,
	resumeKind,
	leaveKind,
	joinKind,
	upgradeKind,
	cpuKind,
	memoryKind,
	diskSlowKind,
	diskFullKind,
	networkLoadKind,
	commandKind,
	clockSkewKind,
}

// Kinds returns all kinds of events.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// kindNames returns the keys of the kinds.
func kindNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// Docs is a kind's part of docs/events.md, which "make docs" writes.
type Docs struct {
	Section Section
	// Rows are lines of the section's table, at least one.
	Rows []Row
}

// Section is a part of docs/events.md.
type Section string

const (
	SectionLinks      Section = "Links"
	SectionNodes      Section = "Nodes"
	SectionMembership Section = "Membership"
	SectionResources  Section = "Resources"
	SectionCommands   Section = "Commands"
)

// Sections returns all sections, in the order of the page.
func Sections() []Section {
	return []Section{SectionLinks, SectionNodes, SectionMembership, SectionResources, SectionCommands}
}

// Row is a line of a table.
type Row struct {
	// Examples are values of the kind's key in an experiment.
	Examples []string
	Text     string
}

// Offer is a form of the dashboard that fires a kind of event at selected nodes or links. The
// dashboard sends {KIND: {Targets: names, Amount.Key: amount}}.
type Offer struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Kind is the name of its kind.
	Kind string `json:"kind"`
	// On is what the user selects, Targets the key for the selected names.
	On      record.Scope `json:"on"`
	Targets string       `json:"targets"`
	// Amount is an optional input field.
	Amount *Amount `json:"amount,omitempty"`
}

// Amount is an input field of an Offer.
type Amount struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	// Value is the default.
	Value string `json:"value"`
	// Number means that the value is sent as a number.
	Number bool `json:"number,omitempty"`
}

// Offers returns the dashboard's forms: links before nodes, direct effects before indirect ones,
// and cuts before other changes.
func Offers() (all []Offer) {
	rank := map[string]int{}
	for _, k := range kinds {
		for _, o := range k.Offers {
			o.Kind = k.Name
			for i, later := range []bool{k.Effect.Makes != record.Down, k.Effect.On != o.On, o.On != record.OnLinks} {
				if later {
					rank[o.ID] += 1 << i
				}
			}
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b Offer) int { return rank[a.ID] - rank[b.ID] })
	return all
}
