package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"skerry/internal/topology"
)

// Choice takes some of many, each time that an event happens.
type Choice struct {
	// Choose is which: all of them; the next ones in the order of the list, until it is
	// at its end; or some at random.
	Choose string `yaml:"choose" json:"choose" jsonschema:"default=all,enum=all,enum=next,enum=random"`
	// Count is how many, for next and random.
	Count int `yaml:"count" json:"count" jsonschema:"default=1,minimum=1"`
}

// take returns the places of those taken of n, in order. busy ones are not taken at
// random. Nil is when none is left.
func (c Choice) take(n, turn int, busy func(int) bool, r *rand.Rand) []int {
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

// turns is how often next can take; 0 is without end.
func (c Choice) turns(n int) int {
	if c.Choose != "next" {
		return 0
	}
	return (n + c.Count - 1) / c.Count
}

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
func (n Nodes) members(s Stage, fail failure, doing string) []string {
	all := n.resolve(s, fail)
	for _, name := range all {
		if !s.database(name) {
			fail("nodes", "", "%s cannot be %s: no database ever runs there", name, doing)
			return nil
		}
	}
	return all
}

// database tells whether a node may carry the database at some time.
func (s Stage) database(node string) bool {
	return node != s.Client && slices.ContainsFunc(s.mayCarry(), func(n string) bool { return n == node })
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

// Links chooses links, and a direction of them.
type Links struct {
	// Between are two nodes or sites: all links from the one to the other.
	Between []string `yaml:"between" json:"between,omitempty" jsonschema:"minItems=2,maxItems=2"`
	// Of are nodes or sites: all links that end there. Without between and of it is all links.
	Of Names `yaml:"of" json:"of,omitempty"`
	// IDs are links by their own names: "A~B" for the first of a pair, "A~B#2" for the second
	// of a mesh, or the name that the topology gives.
	IDs Names `yaml:"ids" json:"ids,omitempty"`
	// Connected takes at random only links without which the others, but for those that
	// this event has taken before and not given back, still join all nodes.
	Connected bool `yaml:"connected" json:"connected,omitempty"`
	// OneWay leaves the way back as it is: from the first of between to the second, or
	// outwards from what of names.
	OneWay bool `yaml:"one_way" json:"one_way,omitempty"`
	Choice `yaml:",inline"`
}

// Alternatives: links are named by their two ends, by one, or by themselves.
func (Links) Alternatives() [][]string { return [][]string{{"between", "of", "ids"}} }

// direction is one direction of a link.
type direction struct {
	id   string
	back bool // from B to A
}

// chosen is a link with those of its directions that are meant.
type chosen struct {
	id   string
	ways []direction
}

// match are the links meant, in topology order.
func (l Links) match(s Stage) []chosen {
	var found []chosen
	for _, x := range s.Topology.Links {
		there, back := l.ways(s, x.A, x.B)
		if len(l.IDs) > 0 {
			there = slices.Contains(l.IDs, x.ID)
			back = there
		}
		c := chosen{id: x.ID}
		if there || back && !l.OneWay {
			c.ways = append(c.ways, direction{x.ID, false})
		}
		if back || there && !l.OneWay {
			c.ways = append(c.ways, direction{x.ID, true})
		}
		if len(c.ways) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// ways tells whether the way from a to b, and the one from b to a, is meant.
func (l Links) ways(s Stage, a, b string) (there, back bool) {
	if len(l.Between) == 2 {
		x, y := l.Between[0], l.Between[1]
		return s.at(a, x) && s.at(b, y), s.at(b, x) && s.at(a, y)
	}
	if len(l.Of) == 0 {
		return true, true
	}
	is := func(node string) bool {
		return slices.ContainsFunc(l.Of, func(name string) bool {
			group, _ := s.named(name)
			return s.at(node, name) || slices.Contains(group, node)
		})
	}
	return is(a), is(b)
}

func (l Links) check(s Stage, fail failure) {
	for i, name := range l.Between {
		if !slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool { return n.Name == name || n.Site == name }) {
			fail(fmt.Sprintf("between[%d]", i), s.meant(name), "there is no node or site %q", name)
			return
		}
	}
	if _, unknown := s.nodes(l.Of); unknown != "" {
		fail("of", s.meant(unknown), "there is no node or site %q", unknown)
		return
	}
	for i, id := range l.IDs {
		if !slices.ContainsFunc(s.Topology.Links, func(x topology.Link) bool { return x.ID == id }) {
			fail(fmt.Sprintf("ids[%d]", i), "see skerry lab links", "there is no link %q", id)
			return
		}
	}
	if l.Connected && (l.Choose != "random" || l.Count != 1) {
		fail("connected", "write choose: random", "links are kept connected where they are chosen at random, one at a time")
		return
	}
	n := len(l.match(s))
	switch {
	case n == 0 && len(l.Between) == 2:
		fail("between", "", "there is no link between %s and %s", l.Between[0], l.Between[1])
	case n == 0:
		fail("", "", "there is no such link")
	case l.Choose == "random" && l.Count > n:
		fail("count", "", "%d are asked for, of %d links", l.Count, n)
	}
}

// draw takes the links of one occurrence.
func (l Links) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) []chosen {
	all := l.match(s)
	spoken := func(i int) bool { return busy[all[i].id] }
	if l.Connected {
		spoken = func(i int) bool { return busy[all[i].id] || s.Topology.Bridge(all[i].id, busy) }
	}
	var links []chosen
	for _, i := range l.take(len(all), turn, spoken, r) {
		links = append(links, all[i])
	}
	return links
}

// few writes names for a message: all of a few, the number of many.
func few(names []string, what string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	return strings.Join(names, ", ")
}

// limit is how often an event on these nodes can happen; 0 is without end.
func (n Nodes) limit(s Stage) int {
	all, _ := s.nodes(n.Nodes)
	return n.turns(len(all))
}

// limit is how often an event on these links can happen; 0 is without end.
func (l Links) limit(s Stage) int { return l.turns(len(l.match(s))) }
