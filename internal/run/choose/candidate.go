package choose

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/suggest"
	"skerry/internal/database"
	"skerry/internal/topology"
)

// Candidate is a database set in one way.
type Candidate struct {
	Database string `json:"database"`
	database.Choice
	Version string `json:"version,omitempty"`
	// Members are the nodes that carry it, where this machine cannot carry it on all of them; Reduced
	// says why.
	Members []string `json:"members,omitempty"`
	Reduced string   `json:"reduced,omitempty"`
}

// ID names the candidate in commands and in the choice's folder: "redis-one-copy".
func (c Candidate) ID() string {
	return Slug(c.Database + "-" + c.Choice.Name)
}

// Slug is a text as files are called by it.
func Slug(text string) string {
	return strings.Trim(unsafe.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

var unsafe = regexp.MustCompile(`[^a-z0-9]+`)

// Label is what people read.
func (c Candidate) Label() string {
	if len(c.Members) > 0 {
		return fmt.Sprintf("%s, %s (on %d nodes)", c.Database, c.Choice.Name, len(c.Members))
	}
	return fmt.Sprintf("%s, %s", c.Database, c.Choice.Name)
}

// Left is a candidate, or a database, that is not tried.
type Left struct {
	Who string `json:"who"`
	Why string `json:"why"`
}

// candidates are those that could do, and what was left out with the reason.
func candidates(n Needs, registry []database.About, memory int64) (in []Candidate, out []Left, err error) {
	place := n.place()
	known := map[string]database.About{}
	for _, a := range registry {
		if a.Choices != nil {
			known[a.Name] = a
		}
	}
	names := slices.DeleteFunc(slices.Clone(n.Consider), func(name string) bool { return name == others })
	if len(names) == 0 || slices.Contains(n.Consider, others) {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for i, name := range names {
		a, ok := known[name]
		if !ok {
			near := suggest.Nearest(name, slices.Collect(maps.Keys(known)))
			return nil, nil, fmt.Errorf("consider[%d]: %q is no database that can be chosen: there are %s%s", i, name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "), mean(near))
		}
		db := a.New()
		installed, err := database.Locate(db, "", "")
		if err != nil {
			out = append(out, Left{name, fmt.Sprintf("it is not installed: skerry install %s", name)})
			continue
		}
		place, reduced := n.carried(db, place, memory)
		for _, choice := range a.Choices(place) {
			c := Candidate{Database: name, Choice: choice, Version: installed.Version, Reduced: reduced}
			if reduced != "" {
				c.Members = place.Nodes
			}
			if why := n.refuses(c, db, len(place.Nodes)); why != "" {
				out = append(out, Left{c.Label(), why})
				continue
			}
			in = append(in, c)
		}
		if len(a.Choices(place)) == 0 {
			out = append(out, Left{name, fmt.Sprintf("it forms no cluster of %d nodes", len(place.Nodes))})
		}
	}
	return in, out, nil
}

func mean(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// refuses says why a candidate cannot do by its design.
func (n Needs) refuses(c Candidate, db database.Database, nodes int) string {
	capable := db.Capabilities()
	switch {
	case c.Reads < n.reads():
		return fmt.Sprintf("reads must be %s and are %s: %s", n.reads(), c.Reads, c.GivesUp)
	case c.Loses != "" && n.losesNothing():
		return "acknowledged writes can be lost: " + c.Loses
	case nodes < capable.MinNodes || capable.MaxNodes > 0 && nodes > capable.MaxNodes:
		return fmt.Sprintf("it forms no cluster of %d nodes", nodes)
	case n.Load.Workload == "e" && !capable.Scan:
		return "workload e scans, and it does not"
	}
	if err := db.Check(nodes, c.Options); err != nil {
		return err.Error()
	}
	return ""
}

// place is the cloud as choices see it.
func (n Needs) place() database.Place {
	var nodes []string
	for _, x := range n.built.Nodes {
		if x.Role != topology.Client {
			nodes = append(nodes, x.Name)
		}
	}
	return n.placeOn(nodes)
}

// placeOn is the part of the cloud that is these nodes. Near is the one that all clients together reach soonest, of those that no
// bad day cuts off from them: nobody has a leader stand where that is to be expected.
func (n Needs) placeOn(nodes []string) database.Place {
	p := database.Place{Nodes: nodes}
	site := map[string]string{}
	for _, x := range n.built.Nodes {
		site[x.Name] = x.Site
	}
	lost := func(node string) bool {
		return !slices.Contains(n.Client, site[node]) && slices.ContainsFunc(n.BadDays, func(d BadDay) bool { return d.SiteLost == site[node] })
	}
	if near := nearest(n.built, nodes); len(near) > 0 {
		p.Near = near[max(0, slices.IndexFunc(near, func(node string) bool { return !lost(node) }))]
		p.Site = site[p.Near]
	}
	return p
}

// nearest are nodes in the order of their distance from all clients together. To a client without a link
// it counts as far as the longest link.
func nearest(t topology.Topology, nodes []string) []string {
	var clients []string
	for _, n := range t.Nodes {
		if n.Role == topology.Client {
			clients = append(clients, n.Name)
		}
	}
	longest, shortest := time.Duration(0), map[[2]string]time.Duration{}
	for _, l := range t.Links {
		longest = max(longest, l.AB.Latency)
		for _, ends := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			if d, known := shortest[ends]; !known || l.AB.Latency < d {
				shortest[ends] = l.AB.Latency
			}
		}
	}
	away := map[string]time.Duration{}
	for _, n := range nodes {
		for _, c := range clients {
			if d, linked := shortest[[2]string{c, n}]; linked {
				away[n] += d
			} else {
				away[n] += longest
			}
		}
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(away[a], away[b]) })
	return sorted
}
