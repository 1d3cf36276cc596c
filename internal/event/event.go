// Package event is what can happen to a cloud while a trial measures: to its links, its
// nodes, and the membership of its database. An experiment lists events; each entry says
// what happens, to whom, and when.
//
//	[]Event ─ Check ─► problems, at their place in the file
//	   │
//	   └──── Runner ─► occurrence ─ apply ─► World (Net, hosts, cluster) ─ revert ─►
//	           ▲                      │
//	       seed, clock          record.Event
//
// What kinds of events there are stands in registry.go; each is a file, which says all that is
// to be known of it: a Kind, and how an experiment describes one (a spec).
//
// Every event can be reverted, in any order, and combined with others: what a link is
// like is its base with all changes in force put on it in the order in which they came
// (Net). One seed fixes every random choice, whatever the timing of the trial.
package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

// Event is one entry of the list: exactly one kind of event, and when it happens. Times
// count from the begin of the measurement.
type Event struct {
	// Name is what results call it; its kind where it is left out.
	Name string `yaml:"name" json:"name,omitempty"`
	// At is when it first happens, or where it waits for something, not before when.
	At *unit.Duration `yaml:"at" json:"at,omitempty"`
	// When lets it wait. steady: until the goodput is steady (that of the last 5 s is within
	// 10 % of that of the 5 s before, and no second without operations), counted from when
	// the entry above was done. completed: until the change of the entry above is complete.
	// reverted: until it has been taken back. It happens once for each time that the entry
	// above did.
	When string `yaml:"when" json:"when,omitempty" jsonschema:"enum=steady,enum=completed,enum=reverted"`
	// After is how long it then still waits.
	After unit.Duration `yaml:"after" json:"after,omitempty"`
	// Every repeats it at that interval, from begin to begin.
	Every *unit.Duration `yaml:"every" json:"every,omitempty"`
	// Gap repeats it so long after it was over: reverted, or complete where it is not to be.
	Gap *unit.Duration `yaml:"gap" json:"gap,omitempty"`
	// Churn repeats it at random.
	Churn *Churn `yaml:"churn" json:"churn,omitempty"`
	// For is how long it lasts once its change is complete; then it is reverted. Left out,
	// it lasts to the end of the trial.
	For *unit.Duration `yaml:"for" json:"for,omitempty"`
	// Until ends it: nothing begins then or later, and what lasts is reverted.
	Until *unit.Duration `yaml:"until" json:"until,omitempty"`

	// What happens.
	Spec Spec `yaml:",choice" json:"-" jsonschema:"-"`
}

// Churn repeats an event at random times, as a Poisson process does.
type Churn struct {
	// Every is the mean time from one begin to the next, exponentially distributed.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"required"`
	// Lasting is the mean time that each lasts, exponentially distributed, in place of for.
	Lasting *unit.Duration `yaml:"lasting" json:"lasting,omitempty"`
	// Most is how many may last at once; what would be more is left out. 0 is any number.
	Most int `yaml:"most" json:"most,omitempty" jsonschema:"minimum=0"`
}

// Alternatives: an event is repeated in one way, and is of one kind.
func (Event) Alternatives() [][]string {
	return [][]string{{"every", "gap", "churn"}, KindNames()}
}

// What an entry can wait for.
const (
	whenSteady    = "steady"
	whenCompleted = "completed"
	whenReverted  = "reverted"
)

// Kind is the key of the event's kind, "" where it has none.
func (e Event) Kind() string { return e.Spec.kind.Name }

// NeedsDisks tells whether the machine must be able to bound the disks of nodes for it.
func (e Event) NeedsDisks() bool { return e.Spec.kind.NeedsDisks }

// Label is what messages call the event.
func (e Event) Label() string {
	if e.Name != "" {
		return e.Name
	}
	return e.Kind()
}

// repeats tells whether the entry says by itself when it happens again.
func (e Event) repeats() bool { return e.Every != nil || e.Gap != nil || e.Churn != nil }

// endsEarly tells whether an event is over before the trial is.
func (e Event) endsEarly() bool {
	return e.For != nil || e.Until != nil || e.Churn != nil && e.Churn.Lasting != nil
}

// Spec is what happens: an event of one of the kinds. Its key in the file is the kind's name.
type Spec struct {
	kind Kind
	spec kindSpec // nil where nothing says what happens
}

var _ strict.Chooser = (*Spec)(nil)

// Choices implements strict.Chooser.
func (Spec) Choices() []strict.Choice {
	choices := make([]strict.Choice, len(kinds))
	for i, k := range kinds {
		choices[i] = strict.Choice{Key: k.Name, Type: k.Type()}
	}
	return choices
}

// Choose implements strict.Chooser.
func (w *Spec) Choose(key string, value reflect.Value) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == key })
	if s, ok := value.Addr().Interface().(kindSpec); ok && i >= 0 {
		*w = Spec{kinds[i], s}
	}
}

// MarshalJSON writes the entry as a file has it: what happens stands last, at its kind's name.
func (e Event) MarshalJSON() ([]byte, error) {
	type timing Event // without this method
	b, err := json.Marshal(timing(e))
	if err != nil || e.Spec.spec == nil {
		return b, err
	}
	of, err := json.Marshal(e.Spec.spec)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(b, []byte("}"))
	if len(head) > 1 {
		head = append(head, ',')
	}
	return fmt.Appendf(head, "%q:%s}", e.Kind(), of), nil
}
