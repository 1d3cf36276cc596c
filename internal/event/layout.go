package event

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/topology"
)

// Layout describes a trial's nodes and links before it runs.
type Layout struct {
	// Topology includes the clients.
	Topology topology.Topology
	// Data are the nodes that run the database at the start, in topology order.
	Data []string
	// Clients are the nodes that run load drivers.
	Clients []string
	// Unremovable maps data nodes that cannot leave to the reason. It is nil if not known yet.
	Unremovable map[string]string
	// RealLinks are the links that Skerry does not emulate. Events can only add to them.
	RealLinks map[string]bool
	// NoAbruptLeave is why no node can leave abruptly, "" if nodes can or if it is not known yet.
	NoAbruptLeave string
	// Cluster is set if Skerry did not start the cluster. Then there are no nodes but clients.
	Cluster *external.ClusterSpec
	// Database is nil if it is not known yet. Version is the version or series that the experiment
	// names, "" for the default series.
	Database database.Database
	Version  string
}

// Names of groups of nodes. Names of nodes and sites take precedence.
const (
	groupData      = "data"      // nodes that run the database at the start
	groupRemovable = "removable" // those of them that can leave
	groupSpare     = "spare"     // data nodes that do not run it at the start
	groupClient    = "client"    // nodes of the load drivers
)

// resolveNames resolves names of nodes, sites and groups to nodes, in the given order and without
// duplicates. unknown is the first name without a meaning.
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

// resolveName returns the nodes of one name. Clients belong to no site and only to their own group,
// so that an event at a site does not hit the measurement.
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

func (s Layout) isAt(node, name string) bool {
	return node == name || slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool { return n.Name == node && n.Site == name })
}

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
