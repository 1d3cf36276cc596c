package choose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/spell"
	"skerry/internal/database"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// Candidate is a database set in one way.
type Candidate struct {
	Database string `json:"database"`
	database.Choice
	Version string `json:"version,omitempty"`
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
func (c Candidate) Label() string { return fmt.Sprintf("%s, %s", c.Database, c.Choice.Name) }

// Left is a candidate, or a database, that is not tried.
type Left struct {
	Who string `json:"who"`
	Why string `json:"why"`
}

// candidates are those that could do, and what was left out with the reason.
func candidates(n Needs, registry []database.About, cloud topology.Topology) (in []Candidate, out []Left, err error) {
	place := placeOf(cloud)
	known := map[string]database.About{}
	for _, a := range registry {
		if a.Choices != nil {
			known[a.Name] = a
		}
	}
	names := n.Consider
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(known))
	}
	for i, name := range names {
		a, ok := known[name]
		if !ok {
			near := spell.Nearest(name, slices.Collect(maps.Keys(known)))
			return nil, nil, fmt.Errorf("consider[%d]: %q is no database that can be chosen: there are %s%s", i, name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "), mean(near))
		}
		db := a.New()
		installed, err := database.Locate(db, "", "")
		if err != nil {
			out = append(out, Left{name, fmt.Sprintf("it is not installed: skerry install %s", name)})
			continue
		}
		for _, choice := range a.Choices(place) {
			c := Candidate{Database: name, Choice: choice, Version: installed.Version}
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

// placeOf is the cloud as choices see it.
func placeOf(t topology.Topology) database.Place {
	var p database.Place
	client := topology.ClientName
	for _, n := range t.Nodes {
		if n.Role == topology.Client {
			client = n.Name
			continue
		}
		p.Nodes = append(p.Nodes, n.Name)
	}
	nearest := map[string]link.Quality{}
	for _, l := range t.Links {
		switch client {
		case l.A:
			nearest[l.B] = l.AB
		case l.B:
			nearest[l.A] = l.AB
		}
	}
	for _, n := range p.Nodes {
		q, linked := nearest[n]
		if best, some := nearest[p.Near]; p.Near == "" || linked && (!some || q.Latency < best.Latency) {
			p.Near = n
		}
	}
	return p
}
