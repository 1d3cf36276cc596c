package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// NodeSelector chooses nodes.
type NodeSelector struct {
	// Nodes are names of nodes, of sites (for all data nodes there), or one of these:
	// data for the nodes that carry the database at first, removable for those of them
	// that can leave, spare for the other data nodes, client for the load driver's.
	Nodes     Names `yaml:"nodes" json:"nodes" jsonschema:"required"`
	Selection `yaml:",inline"`
}

// Shorthand: "kill: Seoul" is "kill: {nodes: Seoul}".
func (NodeSelector) Shorthand() string { return "nodes" }

// resolve checks the names.
func (n NodeSelector) resolve(s Layout, fail failure) []string {
	all, unknown := s.resolveNames(n.Nodes)
	switch {
	case unknown != "":
		fail("nodes", s.suggestName(unknown), "there is no node or site %q", unknown)
	case len(all) == 0:
		fail("nodes", "", "%s: there is no such node here", strings.Join(n.Nodes, ", "))
	case n.Choose == "random" && n.Count > len(all):
		fail("count", "", "%d are asked for, of %d nodes", n.Count, len(all))
	}
	return all
}

// checkMembers checks that the nodes run the database.
func (n NodeSelector) checkMembers(s Layout, fail failure, doing string) {
	for _, name := range n.resolve(s, fail) {
		if !s.mayRunDatabase(name) {
			fail("nodes", "", "%s cannot be %s: no database ever runs there", name, doing)
			return
		}
	}
}

// mayRunDatabase tells whether a node may carry the database at some time.
func (s Layout) mayRunDatabase(node string) bool {
	return !slices.Contains(s.Clients, node) && slices.Contains(s.databaseNodes(), node)
}

func (s Layout) databaseNodes() []string {
	spare, _ := s.resolveName(groupSpare)
	return append(slices.Clone(s.Data), spare...)
}

// draw takes the nodes of one occurrence.
func (n NodeSelector) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) []string {
	all, _ := s.resolveNames(n.Nodes)
	var nodes []string
	for _, i := range n.pick(len(all), turn, func(i int) bool { return busy[all[i]] }, r) {
		nodes = append(nodes, all[i])
	}
	return nodes
}

// limit is how often an event on these nodes can happen; 0 is without end.
func (n NodeSelector) limit(s Layout) int {
	all, _ := s.resolveNames(n.Nodes)
	return n.turnLimit(len(all))
}

// Selection takes some of many, each time that an event happens.
type Selection struct {
	// Choose is which: all of them; the next ones in the order of the list, until it is
	// at its end; or some at random.
	Choose string `yaml:"choose" json:"choose" jsonschema:"default=all,enum=all,enum=next,enum=random"`
	// Count is how many, for next and random.
	Count int `yaml:"count" json:"count" jsonschema:"default=1,minimum=1"`
}

// pick returns the places of those taken of n, in order. busy ones are not taken at
// random. Nil is when none is left.
func (c Selection) pick(n, turn int, busy func(int) bool, r *rand.Rand) []int {
	switch c.Choose {
	case "next":
		var taken []int
		for i := turn * c.Count; i < min(n, (turn+1)*c.Count); i++ {
			taken = append(taken, i)
		}
		return taken
	case "random":
		// Drawn before the busy ones are left out, so that what one event draws does
		// not depend on how long another lasts.
		order := r.Perm(n)
		order = slices.DeleteFunc(order, busy)
		order = order[:min(c.Count, len(order))]
		slices.Sort(order)
		return order
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// selectsAll tells whether all are taken, each time.
func (c Selection) selectsAll() bool { return c.Choose == "all" }

// turnLimit is how often next can take; 0 is without end.
func (c Selection) turnLimit(n int) int {
	if c.Choose != "next" {
		return 0
	}
	return (n + c.Count - 1) / c.Count
}

// joinNames writes names for a message: all of a few, the number of many.
func joinNames(names []string, what string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	return strings.Join(names, ", ")
}
