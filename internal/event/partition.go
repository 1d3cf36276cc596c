package event

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"skerry/internal/record"
)

var partitionKind = Kind{
	Name: "partition", Summary: "cuts every link between groups of nodes.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs: Docs{SectionLinks, []Row{{Examples: []string{`{groups: [[Pune], [Seoul, Dubai]]}`, `{split: 2}`},
		Text: "every link between two groups is cut. A node in no group reaches everybody. `split` draws groups of the database's nodes. With `one_way`, only what the " +
			"first group sends is lost"}}},
	newSpec: func() kindSpec { return new(Partition) },
}

// Partition cuts every link between nodes of different groups: groups, or split.
type Partition struct {
	// Groups are lists of nodes and sites; a site is all that stands there, the client
	// too. Whoever is in no group reaches everybody.
	Groups [][]string `yaml:"groups" json:"groups,omitempty"`
	// Split divides the nodes that carry the database into so many groups at random, as
	// equal as can be, anew each time.
	Split int `yaml:"split" json:"split,omitempty" jsonschema:"minimum=2"`
	// OneWay drops only what the first group sends to the others.
	OneWay bool `yaml:"one_way" json:"one_way,omitempty"`
}

// Alternatives: groups are given or drawn.
func (Partition) Alternatives() [][]string { return [][]string{{"groups", "split"}} }

func (p *Partition) check(s Layout, fail failure) {
	switch {
	case p.Split > len(s.Data):
		fail("split", "", "%d nodes cannot make %d groups", len(s.Data), p.Split)
	case p.Split == 0 && len(p.Groups) < 2:
		fail("groups", "write groups: [[Pune], [Seoul, Dubai]]", "a partition has two groups or more")
	}
	for i, group := range p.Groups {
		for k, name := range group {
			key := fmt.Sprintf("groups[%d][%d]", i, k)
			if _, unknown := s.resolveNames([]string{name}); unknown != "" {
				fail(key, s.suggestName(name), "there is no node or site %q", name)
				return
			}
		}
		if len(group) == 0 {
			fail(fmt.Sprintf("groups[%d]", i), "", "the group is empty")
			return
		}
	}
	if p.Split > 0 || len(p.Groups) < 2 {
		return
	}
	for _, n := range s.Topology.Nodes {
		if in := s.groupIndexes(n.Name, p.Groups); len(in) > 1 {
			fail("groups", "", "%s is in two groups", n.Name)
			return
		}
	}
	if len(p.cut(s, s.groupByNode(p.Groups))) == 0 {
		fail("groups", "", "there is no link between the groups")
	}
}

// groupIndexes are the places of the groups that a node is in.
func (s Layout) groupIndexes(node string, groups [][]string) (in []int) {
	for i, group := range groups {
		if slices.ContainsFunc(group, func(name string) bool {
			special, _ := s.resolveName(name)
			return s.isAt(node, name) || slices.Contains(special, node)
		}) {
			in = append(in, i)
		}
	}
	return in
}

// groupByNode maps nodes to the place of their group; those in none are left out.
func (s Layout) groupByNode(groups [][]string) map[string]int {
	of := map[string]int{}
	for _, n := range s.Topology.Nodes {
		if in := s.groupIndexes(n.Name, groups); len(in) > 0 {
			of[n.Name] = in[0]
		}
	}
	return of
}

// cut are the links between nodes in different places.
func (p *Partition) cut(s Layout, of map[string]int) []linkTarget {
	var links []linkTarget
	for _, l := range s.Topology.Links {
		a, inA := of[l.A]
		b, inB := of[l.B]
		if !inA || !inB || a == b {
			continue
		}
		c := linkTarget{id: l.ID}
		if a == 0 || !p.OneWay {
			c.directions = append(c.directions, direction{l.ID, false})
		}
		if b == 0 || !p.OneWay {
			c.directions = append(c.directions, direction{l.ID, true})
		}
		if len(c.directions) > 0 {
			links = append(links, c)
		}
	}
	return links
}

func (p *Partition) draw(s Layout, _ int, _ map[string]bool, r *rand.Rand) action {
	groups, of := p.Groups, s.groupByNode(p.Groups)
	if p.Split > 0 {
		groups = make([][]string, p.Split)
		for i, k := range r.Perm(len(s.Data)) {
			of[s.Data[k]] = i % p.Split
		}
		for _, n := range s.Data {
			groups[of[n]] = append(groups[of[n]], n)
		}
	}
	names := make([]string, len(groups))
	for i, group := range groups {
		names[i] = strings.Join(group, " ")
	}
	text := "partition " + strings.Join(names, " | ")
	if p.OneWay {
		text = fmt.Sprintf("partition, one way: nothing passes from %s to %s", names[0], strings.Join(names[1:], ", "))
	}
	on, ok := newLinkAction(p.cut(s, of), "%s", setDown(true)).(*linkAction)
	if !ok {
		return nil
	}
	return &partitionAction{linkAction: *on, text: text}
}

// partitionAction is links that are down, told as what that means.
type partitionAction struct {
	linkAction
	text string
}

func (p *partitionAction) what() string { return p.text }
