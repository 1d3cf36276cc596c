package event

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Nodes chooses nodes.
type Nodes struct {
	// Nodes are names of nodes, of sites (for all data nodes there), or one of these:
	// data for the nodes that carry the database at first, removable for those of them
	// that can leave, spare for the other data nodes, client for the load driver's.
	Nodes  Names `yaml:"nodes" json:"nodes" jsonschema:"required"`
	Choice `yaml:",inline"`
}

// Shorthand: "kill: Seoul" is "kill: {nodes: Seoul}".
func (Nodes) Shorthand() string { return "nodes" }

// resolve checks the names.
func (n Nodes) resolve(s Stage, fail failure) []string {
	all, unknown := s.nodes(n.Nodes)
	switch {
	case unknown != "":
		fail("nodes", s.meant(unknown), "there is no node or site %q", unknown)
	case len(all) == 0:
		fail("nodes", "", "%s: there is no such node here", strings.Join(n.Nodes, ", "))
	case n.Choose == "random" && n.Count > len(all):
		fail("count", "", "%d are asked for, of %d nodes", n.Count, len(all))
	}
	return all
}

// members checks that the nodes run the database.
func (n Nodes) members(s Stage, fail failure, doing string) {
	for _, name := range n.resolve(s, fail) {
		if !s.database(name) {
			fail("nodes", "", "%s cannot be %s: no database ever runs there", name, doing)
			return
		}
	}
}

// database tells whether a node may carry the database at some time.
func (s Stage) database(node string) bool {
	return !slices.Contains(s.Clients, node) && slices.Contains(s.mayCarry(), node)
}

func (s Stage) mayCarry() []string {
	spare, _ := s.named(groupSpare)
	return append(slices.Clone(s.Data), spare...)
}

// draw takes the nodes of one occurrence.
func (n Nodes) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) []string {
	all, _ := s.nodes(n.Nodes)
	var nodes []string
	for _, i := range n.take(len(all), turn, func(i int) bool { return busy[all[i]] }, r) {
		nodes = append(nodes, all[i])
	}
	return nodes
}

// limit is how often an event on these nodes can happen; 0 is without end.
func (n Nodes) limit(s Stage) int {
	all, _ := s.nodes(n.Nodes)
	return n.turns(len(all))
}
