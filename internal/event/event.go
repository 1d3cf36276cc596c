// Package event injects events into a running trial: changes of links, nodes and database
// membership. An experiment lists the events; each entry says what happens, to which targets, and
// when.
//
//	[]Event ─ Check ─► mistakes, with their place in the file
//	   │
//	   └──── Runner ─► occurrence ─ apply ─► Testbed (links, hosts, cluster) ─ revert ─►
//	           ▲                      │
//	       seed, clock          record.Event
//
// A Kind describes one kind of event; its kindSpec holds the settings from the experiment. Events
// can be combined and reverted in any order: LinkLayers computes the settings of a link from its
// base and all changes in force. The seed fixes every random choice, independent of timing.
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

// Event is one entry of the list: one kind of event, and when it happens. Times count from the
// start of the measurement.
type Event struct {
	// Name is the event's name in results. The default is its kind.
	Name string `yaml:"name" json:"name,omitempty"`
	// At is when the event first happens. With when, it is the earliest time.
	At *unit.Duration `yaml:"at" json:"at,omitempty"`
	// When delays the event until a condition holds. steady waits until the goodput is steady after
	// the previous entry has ended: the means of two consecutive 5 s windows differ by at most 10
	// %, and no second is without operations. completed waits until the change of the previous
	// entry is complete, reverted until it has been reverted. The event happens once for each
	// occurrence of the previous entry.
	When string `yaml:"when" json:"when,omitempty" jsonschema:"enum=steady,enum=completed,enum=reverted"`
	// After is an additional delay after the condition of when.
	After unit.Duration `yaml:"after" json:"after,omitempty"`
	// Every repeats the event at this interval, from start to start.
	Every *unit.Duration `yaml:"every" json:"every,omitempty"`
	// Gap repeats the event this long after its end: after it was reverted, or after its change was
	// complete if it is not reverted.
	Gap *unit.Duration `yaml:"gap" json:"gap,omitempty"`
	// Churn repeats the event at random times.
	Churn *Churn `yaml:"churn" json:"churn,omitempty"`
	// For is how long the event lasts after its change is complete. Then it is reverted. By default
	// it lasts to the end of the trial.
	For *unit.Duration `yaml:"for" json:"for,omitempty"`
	// Until ends the event: no occurrence starts at or after this time, and active ones are
	// reverted.
	Until *unit.Duration `yaml:"until" json:"until,omitempty"`

	Spec Spec `yaml:",choice" json:"-" jsonschema:"-"`
}

// Churn repeats an event at random times, as a Poisson process.
type Churn struct {
	// Every is the mean time between starts, exponentially distributed.
	Every unit.Duration `yaml:"every" json:"every" jsonschema:"required"`
	// Lasting is the mean duration, exponentially distributed. It replaces for.
	Lasting *unit.Duration `yaml:"lasting" json:"lasting,omitempty"`
	// Most is the maximum number of simultaneous occurrences; further ones are skipped. 0 means no
	// limit.
	Most int `yaml:"most" json:"most,omitempty" jsonschema:"minimum=0"`
}

// Alternatives lists keys that exclude each other.
func (Event) Alternatives() [][]string {
	return [][]string{{"every", "gap", "churn"}, kindNames()}
}

const (
	whenSteady    = "steady"
	whenCompleted = "completed"
	whenReverted  = "reverted"
)

// Kind is the name of the event's kind, "" if it has none.
func (e Event) Kind() string { return e.Spec.kind.Name }

// NeedsDisks reports whether the machine must be able to limit the disks of nodes.
func (e Event) NeedsDisks() bool { return e.Spec.kind.NeedsDisks }

// Label is the event's name in messages.
func (e Event) Label() string {
	if e.Name != "" {
		return e.Name
	}
	return e.Kind()
}

func (e Event) repeats() bool { return e.Every != nil || e.Gap != nil || e.Churn != nil }

// endsEarly reports whether the event ends before the trial does.
func (e Event) endsEarly() bool {
	return e.For != nil || e.Until != nil || e.Churn != nil && e.Churn.Lasting != nil
}

// Spec is the part of an entry that says what happens. Its key in the file is the name of the kind.
type Spec struct {
	kind Kind
	spec kindSpec // nil if the entry has no kind
}

var _ strict.Chooser = (*Spec)(nil)

func (Spec) Choices() []strict.ChoiceKey {
	choices := make([]strict.ChoiceKey, len(kinds))
	for i, k := range kinds {
		choices[i] = strict.ChoiceKey{Key: k.Name, Type: k.Type()}
	}
	return choices
}

func (w *Spec) Choose(key string, value reflect.Value) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == key })
	if s, ok := value.Addr().Interface().(kindSpec); ok && i >= 0 {
		*w = Spec{kinds[i], s}
	}
}

// MarshalJSON writes the entry in the form of the experiment file, with the kind's key last.
func (e Event) MarshalJSON() ([]byte, error) {
	type timing Event // Event without this method
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
