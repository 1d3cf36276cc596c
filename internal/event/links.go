package event

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"skerry/internal/link"
	"skerry/internal/topology"
)

// LinkSelector chooses links, and a direction of them.
type LinkSelector struct {
	// Between are two nodes or sites: all links from the first to the second.
	Between []string `yaml:"between" json:"between,omitempty" jsonschema:"minItems=2,maxItems=2"`
	// Of are nodes or sites: all links that end there; or links as "Pune~Sydney", either end
	// first, where * and ? stand for any: "Pune~*". Without between and of it is all links.
	Of Names `yaml:"of" json:"of,omitempty"`
	// IDs are links by their own names, as skerry lab links and skerry validate --links show
	// them: "A~B", or "A~B#1", "A~B#2" where a pair has several, or the name that the topology gives.
	IDs Names `yaml:"ids" json:"ids,omitempty"`
	// Connected keeps all nodes joined by the links that are left: a random choice passes over a
	// link if its loss, together with this event's earlier ones that still hold, would part them.
	Connected bool `yaml:"connected" json:"connected,omitempty"`
	// OneWay leaves the way back as it is: from the first of between to the second, or
	// outwards from what of names.
	OneWay    bool `yaml:"one_way" json:"one_way,omitempty"`
	Selection `yaml:",inline"`
}

// Alternatives: links are named by their two ends, by one, or by themselves.
func (LinkSelector) Alternatives() [][]string { return [][]string{{"between", "of", "ids"}} }

// direction is one direction of a link.
type direction struct {
	id   string
	back bool // from B to A
}

// linkTarget is a link with those of its directions that are meant.
type linkTarget struct {
	id         string
	directions []direction
}

// match are the links meant, in topology order.
func (l LinkSelector) match(s Layout) []linkTarget {
	var found []linkTarget
	for _, x := range s.Topology.Links {
		there, back := l.matchDirections(s, x)
		if len(l.IDs) > 0 {
			there = slices.Contains(l.IDs, x.ID)
			back = there
		}
		c := linkTarget{id: x.ID}
		if there || back && !l.OneWay {
			c.directions = append(c.directions, direction{x.ID, false})
		}
		if back || there && !l.OneWay {
			c.directions = append(c.directions, direction{x.ID, true})
		}
		if len(c.directions) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// matchDirections tells whether the way from a to b, and the one from b to a, is meant.
func (l LinkSelector) matchDirections(s Layout, x topology.Link) (there, back bool) {
	a, b := x.A, x.B
	if len(l.Between) == 2 {
		from, to := l.Between[0], l.Between[1]
		return s.isAt(a, from) && s.isAt(b, to), s.isAt(b, from) && s.isAt(a, to)
	}
	if len(l.Of) == 0 {
		return true, true
	}
	for _, name := range l.Of {
		if topology.IsPattern(name) {
			forward, backward, err := topology.Match(name, x.ID, a, b)
			there, back = there || forward && err == nil, back || backward && err == nil
			continue
		}
		group, _ := s.resolveName(name)
		is := func(node string) bool { return s.isAt(node, name) || slices.Contains(group, node) }
		there, back = there || is(a), back || is(b)
	}
	return there, back
}

func (l LinkSelector) check(s Layout, fail failure) {
	for i, name := range l.Between {
		if !slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool { return n.Name == name || n.Site == name }) {
			fail(fmt.Sprintf("between[%d]", i), s.suggestName(name), "there is no node or site %q", name)
			return
		}
	}
	for _, name := range l.Of {
		if topology.IsPattern(name) {
			if len((LinkSelector{Of: Names{name}}).match(s)) == 0 {
				fail("of", suggestLink(s, name), "no link matches %q", name)
				return
			}
		} else if _, known := s.resolveName(name); !known {
			fail("of", cmp.Or(suggestPair(s, name), s.suggestName(name)), "there is no node or site %q", name)
			return
		}
	}
	for i, id := range l.IDs {
		if !slices.ContainsFunc(s.Topology.Links, func(x topology.Link) bool { return x.ID == id }) {
			hint := suggestLink(s, id)
			if pair := (LinkSelector{Of: Names{id}}).match(s); topology.IsPattern(id) && len(pair) > 0 {
				hint = "links between the two are " + joinNames(linkIDs(pair), "links") + "; of: " + id + " means all of them"
			}
			fail(fmt.Sprintf("ids[%d]", i), hint, "there is no link %q", id)
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

// rejectRealLinks refuses to say what links become that are left as they are: an event can add to those.
func (l LinkSelector) rejectRealLinks(s Layout, key, hint string, fail failure) {
	for _, x := range l.match(s) {
		if s.RealLinks[x.id] {
			fail(key, hint, "%s is real: nobody asks it to be anything, so that no event can say what it becomes", x.id)
			return
		}
	}
}

// checkQuality refuses a change that would give a link, as the topology has it, a quality which is
// not possible: a jitter that the latency cannot hold.
func (l LinkSelector) checkQuality(s Layout, change func(link.Quality) link.Quality, fail failure) {
	links := map[string]topology.Link{}
	for _, x := range s.Topology.Links {
		links[x.ID] = x
	}
	for _, x := range l.match(s) {
		for _, way := range x.directions {
			q := links[x.id].AB
			if way.back {
				q = links[x.id].BA
			}
			if err := change(q).Validate(); err != nil {
				fail("", "leave out such links, or change latency and jitter together", "%s: %v", x.id, err)
				return
			}
		}
	}
}

// suggestLink is the hint for a name of links that is not known.
func suggestLink(s Layout, name string) string {
	if near := topology.NearestLink(name, s.Topology.Links); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "skerry validate --links lists them"
}

// suggestPair is the hint for two names with a dash between them, "" where they are none.
func suggestPair(s Layout, name string) string {
	a, b, _ := strings.Cut(name, "-")
	_, first := s.resolveName(a)
	if _, second := s.resolveName(b); first && second {
		return fmt.Sprintf("did you mean %q?", a+"~"+b)
	}
	return ""
}

// draw takes the links of one occurrence.
func (l LinkSelector) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) []linkTarget {
	all := l.match(s)
	spoken := func(i int) bool { return busy[all[i].id] }
	if l.Connected {
		spoken = func(i int) bool { return busy[all[i].id] || s.Topology.Bridge(all[i].id, busy) }
	}
	var links []linkTarget
	for _, i := range l.pick(len(all), turn, spoken, r) {
		links = append(links, all[i])
	}
	return links
}

// limit is how often an event on these links can happen; 0 is without end.
func (l LinkSelector) limit(s Layout) int { return l.turnLimit(len(l.match(s))) }
