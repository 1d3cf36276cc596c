package event

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/base/unit"
	"skerry/internal/record"
)

var linkDownKind = Kind{
	Name: "link_down", Summary: "takes links down, silently or with loss of carrier.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs: Docs{SectionLinks, []Row{
		{Examples: []string{`{between: [Pune, Seoul]}`, `{choose: next}`}, Text: `packets are dropped silently, as by a failed radio link`},
		{Examples: []string{`{between: [Pune, Seoul], mode: carrier}`},
			Text: `the devices at both ends go down too, as when a cable is pulled; routing sees it at once`},
	}},
	Offers: []Offer{
		{ID: "cut", Title: "Cut links", On: record.OnLinks, Targets: "ids"},
		{ID: "isolate", Title: "Cut nodes off", On: record.OnNodes, Targets: "of"},
	},
	newSpec: func() kindSpec { return new(LinkDown) },
}

const (
	modeSilent  = "silent"
	modeCarrier = "carrier"
)

// LinkDown takes links down.
type LinkDown struct {
	LinkSelector `yaml:",inline"`
	// Mode is how the links go down. silent drops every packet, and the devices at both ends stay
	// up, as when a radio link fails. carrier sets the devices down too, as when a cable is pulled;
	// routing sees it at once.
	Mode string `yaml:"mode" json:"mode" jsonschema:"default=silent,enum=silent,enum=carrier"`
}

func (l *LinkDown) check(s Layout, fail failure) {
	l.LinkSelector.check(s, fail)
	if l.Mode == modeCarrier && l.OneWay {
		fail("one_way", "remove one_way, or write mode: silent", "mode carrier always affects both directions")
	}
}

func (l *LinkDown) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	links := l.LinkSelector.draw(s, turn, busy, r)
	if l.Mode == modeCarrier {
		return newCarrierAction(links, "%s down, carrier lost", setDown(true), true)
	}
	return newLinkAction(links, "%s down", setDown(true))
}

var linkUpKind = Kind{
	Name: "link_up", Summary: "restores links that are down.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Up},
	Docs: Docs{SectionLinks, []Row{{Examples: []string{`{between: [Pune, Seoul]}`},
		Text: `all links between the two pass packets again, whichever event took them down; ids: [NAME] selects one link`}}},
	newSpec: func() kindSpec { return new(linkUp) },
}

// linkUp overrides earlier cuts. A later event can take the link down again.
type linkUp struct {
	LinkSelector `yaml:",inline"`
}

func (l *linkUp) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newCarrierAction(l.LinkSelector.draw(s, turn, busy, r), "%s up", setDown(false), false)
}

var linkFlapKind = Kind{
	Name: "link_flap", Summary: "takes links down and up repeatedly.",
	Effect:  record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs:    Docs{SectionLinks, []Row{{Examples: []string{`{of: Pune, down: 1s, up: 4s}`}, Text: `the links go down first`}}},
	newSpec: func() kindSpec { return new(LinkFlap) },
}

// LinkFlap takes links down and up repeatedly, all selected links together.
type LinkFlap struct {
	LinkSelector `yaml:",inline"`
	// Down is the time that the links are down in each cycle. It comes first.
	Down unit.Duration `yaml:"down" json:"down" jsonschema:"required"`
	// Up is the time that the links are up in each cycle.
	Up unit.Duration `yaml:"up" json:"up" jsonschema:"required"`
}

// minFlap leaves time for the change itself: changing all links of azure8 takes milliseconds.
const minFlap = unit.Duration(10 * time.Millisecond)

func (f *LinkFlap) check(s Layout, fail failure) {
	f.LinkSelector.check(s, fail)
	for key, d := range map[string]unit.Duration{"down": f.Down, "up": f.Up} {
		if d < minFlap {
			fail(key, "", "%v is below the minimum of %v", d, minFlap)
		}
	}
}

func (f *LinkFlap) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	text := fmt.Sprintf("%%s flapping, %v down, %v up", f.Down, f.Up)
	on, ok := newLinkAction(f.LinkSelector.draw(s, turn, busy, r), text, setDown(true)).(*linkAction)
	if !ok {
		return nil
	}
	return &flapAction{linkAction: *on, down: f.Down.Duration(), up: f.Up.Duration(), done: make(chan struct{})}
}

type flapAction struct {
	linkAction
	down, up time.Duration

	cancel  context.CancelFunc
	toggler sync.WaitGroup
	done    chan struct{} // closed when toggling failed
	failed  error
}

func (f *flapAction) apply(ctx context.Context, w *Testbed, p *progress) error {
	if err := f.linkAction.apply(ctx, w, p); err != nil {
		return err
	}
	ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx)) // toggling lasts until revert
	f.toggler.Go(func() {
		if err := f.toggle(ctx, w, p); err != nil && ctx.Err() == nil {
			f.failed = err
			close(f.done)
		}
	})
	return nil
}

func (f *flapAction) toggle(ctx context.Context, w *Testbed, p *progress) error {
	down := true
	for {
		stay, change := f.up, f.linkAction.apply
		if down {
			stay, change = f.down, f.linkAction.revert
		}
		if linger.For(ctx, stay) != nil {
			return nil
		}
		if err := change(ctx, w, p); err != nil {
			return err
		}
		down = !down
	}
}

func (f *flapAction) revert(ctx context.Context, w *Testbed, p *progress) error {
	if f.cancel != nil {
		f.cancel()
		f.toggler.Wait()
	}
	return f.linkAction.revert(ctx, w, p)
}

func (f *flapAction) ended() <-chan struct{} { return f.done }
func (f *flapAction) err() error             { return f.failed }

var partitionKind = Kind{
	Name: "partition", Summary: "cuts every link between groups of nodes.",
	Effect: record.Effect{On: record.OnLinks, Makes: record.Down},
	Docs: Docs{SectionLinks, []Row{{Examples: []string{`{groups: [[Pune], [Seoul, Dubai]]}`, `{split: 2}`},
		Text: "every link between two groups is cut. A node in no group reaches all nodes. `split` draws random groups " +
			"of the database's nodes. `one_way` drops only packets that the first group sends"}}},
	newSpec: func() kindSpec { return new(Partition) },
}

// Partition cuts every link between nodes of different groups: groups, or split.
type Partition struct {
	// Groups are lists of nodes and sites. A site stands for all its nodes, clients included. A
	// node in no group reaches all others.
	Groups [][]string `yaml:"groups" json:"groups,omitempty"`
	// Split divides the nodes that run the database into this number of random groups of equal
	// size, drawn again for each occurrence.
	Split int `yaml:"split" json:"split,omitempty" jsonschema:"minimum=2"`
	// OneWay drops only packets from the first group to the others.
	OneWay bool `yaml:"one_way" json:"one_way,omitempty"`
}

func (Partition) Alternatives() [][]string { return [][]string{{"groups", "split"}} }

func (p *Partition) check(s Layout, fail failure) {
	switch {
	case p.Split > len(s.Data):
		fail("split", "", "cannot split %d nodes into %d groups", len(s.Data), p.Split)
	case p.Split == 0 && len(p.Groups) < 2:
		fail("groups", "write groups: [[Pune], [Seoul, Dubai]]", "a partition needs at least two groups")
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

func (s Layout) groupByNode(groups [][]string) map[string]int {
	of := map[string]int{}
	for _, n := range s.Topology.Nodes {
		if in := s.groupIndexes(n.Name, groups); len(in) > 0 {
			of[n.Name] = in[0]
		}
	}
	return of
}

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

type partitionAction struct {
	linkAction
	text string
}

func (p *partitionAction) what() string { return p.text }
