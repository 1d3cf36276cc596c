package event

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/topology"
)

// Layout is what is known of a trial before it runs: where events can happen.
type Layout struct {
	// Topology has the client in it.
	Topology topology.Topology
	// Data are the nodes that carry the database when it starts, in topology order.
	Data []string
	// Clients are the nodes that load drivers run on.
	Clients []string
	// Fixed maps data nodes that cannot leave to why; nil where nobody knows yet.
	Unremovable map[string]string
	// Real are the links that are left as they are: events may add to those.
	RealLinks map[string]bool
	// Frail is why none can leave abruptly, "" where they can and where nobody knows yet.
	NoAbruptLeave string
}

// Names of groups of nodes, where no node or site has that name.
const (
	groupData      = "data"      // those that carry the database at first
	groupRemovable = "removable" // those of them that can leave
	groupSpare     = "spare"     // data nodes of the topology that do not carry it
	groupClient    = "client"    // the load driver's
)

// resolveNames resolves names of nodes, sites and groups to nodes in the order given, each once.
// The first name that means nothing is returned.
func (s Layout) resolveNames(names []string) (resolveNames []string, unknown string) {
	for _, name := range names {
		found, ok := s.resolveName(name)
		if !ok {
			return nil, name
		}
		for _, n := range found {
			if !slices.Contains(resolveNames, n) {
				resolveNames = append(resolveNames, n)
			}
		}
	}
	return resolveNames, ""
}

// resolveName are the nodes that one name stands for. The client belongs to no site and no group
// but its own: what happens to a site's machines is not to happen to the measuring one.
func (s Layout) resolveName(name string) (nodes []string, ok bool) {
	for _, n := range s.Topology.Nodes {
		switch {
		case n.Name == name:
			return []string{name}, true
		case n.Site == name && n.Role != topology.Client:
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) > 0 || slices.ContainsFunc(s.Topology.Sites, func(x topology.Site) bool { return x.Name == name }) {
		return nodes, true
	}
	switch name {
	case groupData:
		return s.Data, true
	case groupRemovable:
		for _, n := range s.Data {
			if s.Unremovable[n] == "" {
				nodes = append(nodes, n)
			}
		}
		return nodes, true
	case groupSpare:
		for _, n := range s.Topology.Nodes {
			if n.Role == topology.Data && !slices.Contains(s.Data, n.Name) {
				nodes = append(nodes, n.Name)
			}
		}
		return nodes, true
	case groupClient:
		return s.Clients, true
	}
	return nil, false
}

// isAt tells whether a node or its site has the name.
func (s Layout) isAt(node, name string) bool {
	return node == name || slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool { return n.Name == node && n.Site == name })
}

// suggestName is the hint for a name that is not known.
func (s Layout) suggestName(name string) string {
	var known []string
	for _, x := range s.Topology.Sites {
		known = append(known, x.Name)
	}
	for _, n := range s.Topology.Nodes {
		known = append(known, n.Name)
	}
	known = append(known, groupData, groupRemovable, groupSpare, groupClient)
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	slices.Sort(known)
	return "known are " + strings.Join(slices.Compact(known), ", ")
}

// Names is one name or a list of names.
type Names []string

var _ strict.Decoder = (*Names)(nil)

// DecodeNode implements strict.Decoder.
func (l *Names) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	items := n.Items
	if n.Kind != strict.List {
		items = []*strict.Node{n}
	}
	*l = nil
	for _, item := range items {
		switch item.Kind {
		case strict.Map, strict.List, strict.Null:
			report(strict.Problem{Pos: item.Pos, Path: path, Message: fmt.Sprintf("%s: want a name or a list of names, not %v", path, item.Kind)})
			return
		}
		*l = append(*l, item.Scalar)
	}
}
