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

// LinkSelector selects links, and optionally one direction of them.
type LinkSelector struct {
	// Between are two nodes or sites. It selects all links from the first to the second.
	Between []string `yaml:"between" json:"between,omitempty" jsonschema:"minItems=2,maxItems=2"`
	// Of are nodes or sites, which select all links that end there. An entry can also be a link
	// pattern such as "Pune~Sydney" or "Pune~*", with either end first and the wildcards * and ?.
	// Without between and of, all links are selected.
	Of Names `yaml:"of" json:"of,omitempty"`
	// IDs are names of single links, as skerry lab links and skerry validate --links show them:
	// "A~B", "A~B#1" and "A~B#2" if a pair has several links, or the name in the topology.
	IDs Names `yaml:"ids" json:"ids,omitempty"`
	// Connected keeps all nodes connected by the remaining links. A random choice skips a link that
	// would disconnect nodes, together with earlier active occurrences of this event.
	Connected bool `yaml:"connected" json:"connected,omitempty"`
	// OneWay changes one direction only: from the first entry of between to the second, or outwards
	// from the nodes of of.
	OneWay    bool `yaml:"one_way" json:"one_way,omitempty"`
	Selection `yaml:",inline"`
}

func (LinkSelector) Alternatives() [][]string { return [][]string{{"between", "of", "ids"}} }

type direction struct {
	id   string
	back bool // from B to A
}

type linkTarget struct {
	id         string
	directions []direction
}

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

// matchDirections reports whether the directions from A to B and from B to A are selected.
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
		fail("connected", "write choose: random", "connected needs choose: random and count: 1")
		return
	}
	n := len(l.match(s))
	switch {
	case n == 0 && len(l.Between) == 2:
		fail("between", "", "there is no link between %s and %s", l.Between[0], l.Between[1])
	case n == 0:
		fail("", "", "no link matches")
	case l.Choose == "random" && l.Count > n:
		fail("count", "", "count %d is above the number of matching links, %d", l.Count, n)
	}
}

// rejectRealLinks reports links that Skerry does not emulate. Events can only add to those.
func (l LinkSelector) rejectRealLinks(s Layout, key, hint string, fail failure) {
	for _, x := range l.match(s) {
		if s.RealLinks[x.id] {
			fail(key, hint, "%s is a real link, which events cannot set or scale", x.id)
			return
		}
	}
}

// checkQuality reports a change that gives a link invalid settings, such as a jitter above the
// latency.
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
				fail("", "exclude such links, or change latency and jitter together", "%s: %v", x.id, err)
				return
			}
		}
	}
}

func suggestLink(s Layout, name string) string {
	if near := topology.NearestLink(name, s.Topology.Links); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "skerry validate --links lists them"
}

// suggestPair returns a hint for two names joined by a dash, "" if they are not node names.
func suggestPair(s Layout, name string) string {
	a, b, _ := strings.Cut(name, "-")
	_, first := s.resolveName(a)
	if _, second := s.resolveName(b); first && second {
		return fmt.Sprintf("did you mean %q?", a+"~"+b)
	}
	return ""
}

func (l LinkSelector) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) []linkTarget {
	all := l.match(s)
	spoken := func(i int) bool { return busy[all[i].id] }
	if l.Connected {
		spoken = func(i int) bool { return busy[all[i].id] || s.Topology.IsBridge(all[i].id, busy) }
	}
	var links []linkTarget
	for _, i := range l.pick(len(all), turn, spoken, r) {
		links = append(links, all[i])
	}
	return links
}

func (l LinkSelector) limit(s Layout) int { return l.turnLimit(len(l.match(s))) }
