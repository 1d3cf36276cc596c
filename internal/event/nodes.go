package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// NodeSelector selects nodes.
type NodeSelector struct {
	// Nodes are names of nodes, of sites (all data nodes there) or of groups: data for the nodes
	// that run the database at the start, removable for those of them that can leave, spare for the
	// other data nodes, client for the nodes of the load drivers.
	Nodes     Names `yaml:"nodes" json:"nodes" jsonschema:"required"`
	Selection `yaml:",inline"`
}

// Shorthand: "kill: Seoul" is "kill: {nodes: Seoul}".
func (NodeSelector) Shorthand() string { return "nodes" }

func (n NodeSelector) resolve(s Layout, fail failure) []string {
	all, unknown := s.resolveNames(n.Nodes)
	switch {
	case s.Cluster != nil && len(all) == 0:
		fail("nodes", "use a command event", "%s: Skerry does not reach the machines of a cluster that it did not start",
			strings.Join(n.Nodes, ", "))
	case unknown != "":
		fail("nodes", s.suggestName(unknown), "there is no node or site %q", unknown)
	case len(all) == 0:
		fail("nodes", "", "%s matches no node", strings.Join(n.Nodes, ", "))
	case n.Choose == "random" && n.Count > len(all):
		fail("count", "", "count %d is above the number of matching nodes, %d", n.Count, len(all))
	}
	return all
}

// checkMembers reports nodes that never run the database.
func (n NodeSelector) checkMembers(s Layout, fail failure, doing string) {
	for _, name := range n.resolve(s, fail) {
		if !s.mayRunDatabase(name) {
			fail("nodes", "", "%s cannot be %s: it never runs the database", name, doing)
			return
		}
	}
}

func (s Layout) mayRunDatabase(node string) bool {
	return !slices.Contains(s.Clients, node) && slices.Contains(s.databaseNodes(), node)
}

func (s Layout) databaseNodes() []string {
	spare, _ := s.resolveName(groupSpare)
	return append(slices.Clone(s.Data), spare...)
}

func (n NodeSelector) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) []string {
	all, _ := s.resolveNames(n.Nodes)
	var nodes []string
	for _, i := range n.pick(len(all), turn, func(i int) bool { return busy[all[i]] }, r) {
		nodes = append(nodes, all[i])
	}
	return nodes
}

func (n NodeSelector) limit(s Layout) int {
	all, _ := s.resolveNames(n.Nodes)
	return n.turnLimit(len(all))
}

// Selection selects some of the matching nodes or links for each occurrence.
type Selection struct {
	// Choose is the selection rule: all, next (in list order, until its end), or random.
	Choose string `yaml:"choose" json:"choose" jsonschema:"default=all,enum=all,enum=next,enum=random"`
	// Count is the number selected by next and random.
	Count int `yaml:"count" json:"count" jsonschema:"default=1,minimum=1"`
}

// pick returns the selected indexes out of n, in order. It never picks busy ones at random, and
// returns nil if none is left.
func (c Selection) pick(n, turn int, busy func(int) bool, r *rand.Rand) []int {
	switch c.Choose {
	case "next":
		var taken []int
		for i := turn * c.Count; i < min(n, (turn+1)*c.Count); i++ {
			taken = append(taken, i)
		}
		return taken
	case "random":
		// Draw before the busy ones are removed, so that the draws do not depend on how long events
		// last.
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

func (c Selection) selectsAll() bool { return c.Choose == "all" }

// turnLimit is the number of occurrences until next reaches its end; 0 means no limit.
func (c Selection) turnLimit(n int) int {
	if c.Choose != "next" {
		return 0
	}
	return (n + c.Count - 1) / c.Count
}

func joinNames(names []string, what string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	return strings.Join(names, ", ")
}
