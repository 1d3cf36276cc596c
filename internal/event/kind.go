package event

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"

	"skerry/internal/record"
)

// Sentinel errors of events.
var (
	// ErrUnavailable says that this machine, or this database, cannot do what an event asks.
	ErrUnavailable = errors.New("unavailable")
	// ErrState says that a node is not in the state that an event needs: one that is to be
	// killed has ended already, for example.
	ErrState = errors.New("wrong state")
	// ErrEnded says that what an event had started ended before its time.
	ErrEnded = errors.New("ended before its time")
)

// Kind is one kind of event: all that is to be known of it beside what it does, which is
// its spec's. Each stands in a file of its own.
type Kind struct {
	// Name is its key in an experiment, Says the sentence about that key; it goes on after
	// the name.
	Name, Summary string
	// Effect is what it does to its targets.
	Effect record.Effect
	// Docs is what docs/events.md says of it.
	Docs Docs
	// Offers are the ways in which the dashboard offers to fire it.
	Offers []Offer
	// Still is the state that nodes are in which it happened to, where they cannot be put
	// into it twice.
	HeldState string
	// Prepares is what it needs made before the database starts, where that makes it one
	// that cannot be fired.
	Preparation string
	// NeedsDisks says that the machine must be able to bound the disks of nodes.
	NeedsDisks bool

	// spec makes an empty one.
	newSpec func() kindSpec
}

// kindSpec is one event of a kind as an experiment describes it.
type kindSpec interface {
	// check reports what is wrong with it on a stage.
	check(s Layout, fail failure)
	// draw resolves the occurrence with that number, from 0: whom it happens to. Of the
	// targets it leaves out those that are busy. Nil is when there is nobody left.
	draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action
}

// Specs may also be one of these.
type (
	// limited ends after so many turns; 0 is never.
	limited interface{ limit(s Layout) int }
	// repeatable tells whether it happens to the same nodes each time.
	repeatable interface{ selectsAll() bool }
	// needy reports what the database cannot do of it. The event is the whole entry.
	databaseDependent interface {
		checkDatabase(c databaseCheck, e Event, fail failure)
	}
	// joiner makes nodes members, leaver ends their membership.
	joiner interface{ joiningNodes(s Layout) []string }
	leaver interface{ leavingNodes(s Layout) []string }
	// onDisks needs disks of that many bytes for nodes before anything starts on them.
	diskReserver interface {
		diskSizes(s Layout) map[string]int64
	}
)

// Type is the type of what an experiment says of it.
func (k Kind) Type() reflect.Type { return reflect.TypeOf(k.newSpec()).Elem() }

// revertible tells whether it can be reverted: what has settled is not, but for members.
func (k Kind) revertible() bool { return !k.Effect.Settles || k.Effect.Member != "" }

// permanent tells whether it is not reverted when the trial ends, since it is a change for good
// unless the experiment says when it is over: a member that left.
func (k Kind) permanent() bool { return k.Effect.Member != "" }

// failure reports a mistake at a key of the event's kind, "" for the kind as a whole.
type failure func(key, hint, format string, args ...any)

// action is one occurrence of an event. Revert may be called after an apply that failed
// half-way, and takes back what had been done.
type action interface {
	// targets are the nodes or links that it happens to.
	targets() []string
	// what says it in a few words: "latency of Pune~Sydney x 3".
	what() string
	apply(ctx context.Context, w *Testbed, p *progress) error
	revert(ctx context.Context, w *Testbed, p *progress) error
}

// fragile is an action that can end by itself once it was applied: a process dies.
type fragile interface {
	// ended is closed then.
	ended() <-chan struct{}
	// err says why.
	err() error
}

// kinds are all kinds of events, in the order in which messages and documents name them. A
// new one is a file and a line here.
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
	cpuKind,
	memoryKind,
	diskSlowKind,
	diskFullKind,
	networkLoadKind,
	clockSkewKind,
}

// Kinds are all kinds of events.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// KindNames are the keys of the kinds.
func KindNames() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// Docs is a kind's part of docs/events.md, which make docs writes from it.
type Docs struct {
	Section Section
	// Rows are those of the section's table, one or more.
	Rows []Row
}

// Section is a part of docs/events.md.
type Section string

// The sections, in order.
const (
	SectionLinks      Section = "Links"
	SectionNodes      Section = "Nodes"
	SectionMembership Section = "Membership"
	SectionResources  Section = "Resources"
)

// Sections are all sections, in order.
func Sections() []Section {
	return []Section{SectionLinks, SectionNodes, SectionMembership, SectionResources}
}

// Row is a line of a table.
type Row struct {
	// Examples are values of the kind's key, as an experiment has them.
	Examples []string
	Text     string
}

// Offer is one way in which the dashboard offers to fire a kind of event at what the reader
// points out on the map. What is sent is {KIND: {Targets: names, Amount.Key: amount}}.
type Offer struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Kind is the name of its kind.
	Kind string `json:"kind"`
	// On is what is pointed out, Targets the key that takes its names.
	On      record.Scope `json:"on"`
	Targets string       `json:"targets"`
	// Amount is what the reader may write, nil for nothing.
	Amount *Amount `json:"amount,omitempty"`
}

// Amount is a field of the form.
type Amount struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	// Value is what stands there first.
	Value string `json:"value"`
	// Number says that it is sent as one.
	Number bool `json:"number,omitempty"`
}

// Offers are what the dashboard offers: for links, then for nodes, what happens to them before
// what happens to their surroundings, and what takes them down before what changes them.
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
