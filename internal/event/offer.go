package event

import (
	"slices"

	"skerry/internal/record"
)

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
