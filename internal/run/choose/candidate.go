package choose

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/suggest"
	"skerry/internal/database"
	"skerry/internal/evidence/race"
	"skerry/internal/experiment"
	"skerry/internal/topology"
)

// Candidate is a database with settings.
type Candidate struct {
	Database string `json:"database"`
	database.Choice
	Version string `json:"version,omitempty"`
	// Members are the nodes of the cluster if this machine cannot run it on all of them; Reduced gives the reason.
	Members []string `json:"members,omitempty"`
	Reduced string   `json:"reduced,omitempty"`
	// Own is the name of a cluster that Skerry did not start, "" for a database in a lab. Location are its servers, and
	// Commands are the commands that trials run.
	Own      string   `json:"own,omitempty"`
	Location string   `json:"location,omitempty"`
	Commands []string `json:"commands,omitempty"`
	// NotMeasured lists the needs and days that cannot be measured on it, with the reasons.
	NotMeasured []string `json:"not_measured,omitempty"`

	own     *experiment.Database
	untried map[string]string // bad days that cannot happen to it, with the reason
}

// ID is the candidate's name in commands and files: "redis-one-copy".
func (c Candidate) ID() string {
	if c.Own != "" {
		return Slug(c.Own)
	}
	return Slug(c.Database + "-" + c.Choice.Name)
}

// Slug converts a text into part of a file name.
func Slug(text string) string {
	return strings.Trim(unsafeChars.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

var unsafeChars = regexp.MustCompile(`[^a-z0-9]+`)

// Label is the candidate's name for users.
func (c Candidate) Label() string {
	switch {
	case c.Own != "":
		return fmt.Sprintf("%s (%s)", c.Own, c.Database)
	case len(c.Members) > 0:
		return fmt.Sprintf("%s, %s (on %d nodes)", c.Database, c.Choice.Name, len(c.Members))
	}
	return fmt.Sprintf("%s, %s", c.Database, c.Choice.Name)
}

// Excluded is a candidate or database that is not tried.
type Excluded struct {
	Who string `json:"who"`
	Why string `json:"why"`
}

func findCandidates(n Needs, registry []database.About, memory int64) (in []Candidate, out []Excluded, err error) {
	place := n.wholePlace()
	known := map[string]database.About{}
	for _, a := range registry {
		if a.Choices != nil {
			known[a.Name] = a
		}
	}
	considered := slices.DeleteFunc(slices.Clone(n.Consider), func(o Considered) bool { return o.Name == otherDatabases })
	if len(considered) == 0 || len(considered) < len(n.Consider) {
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if o := (Considered{Name: name}); !slices.Contains(considered, o) {
				considered = append(considered, o)
			}
		}
	}
	for i, o := range considered {
		if o.Database != nil {
			c, err := n.ownCandidate(o)
			if err != nil {
				return nil, nil, err
			}
			if why := c.hides(n.Prefer[0]); why != "" {
				out = append(out, Excluded{c.Label(), n.Prefer[0] + " ranks the candidates: " + why})
			} else {
				in = append(in, c)
			}
			continue
		}
		name := o.Name
		bare, series, versioned := strings.Cut(name, "@")
		a, ok := known[bare]
		if !ok || versioned && series == "" {
			near := suggest.Nearest(name, slices.Collect(maps.Keys(known)))
			return nil, nil, fmt.Errorf("consider[%d]: unknown database %q: want one of %s%s", i, name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "), suggestion(near))
		}
		db := a.New()
		installed, err := database.Locate(db, series, "")
		switch {
		case errors.Is(err, database.ErrSeries):
			return nil, nil, fmt.Errorf("consider[%d]: %w", i, err)
		case err != nil:
			out = append(out, Excluded{name, "not installed; run: skerry install " + name})
			continue
		}
		place, reduced := n.fitMemory(db, place, memory)
		for _, choice := range a.Choices(place) {
			c := Candidate{Database: name, Choice: choice, Version: installed.Version, Reduced: reduced}
			if reduced != "" {
				c.Members = place.Nodes
			}
			if why := n.rejectionReason(c, db, len(place.Nodes)); why != "" {
				out = append(out, Excluded{c.Label(), why})
				continue
			}
			in = append(in, c)
		}
		if len(a.Choices(place)) == 0 {
			out = append(out, Excluded{name, fmt.Sprintf("cannot form a cluster of %d nodes", len(place.Nodes))})
		}
	}
	return in, out, nil
}

func suggestion(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// rejectionReason returns why a candidate cannot meet the needs by design, "" if it can.
func (n Needs) rejectionReason(c Candidate, db database.Database, nodes int) string {
	capable := db.Capabilities()
	switch {
	case c.Reads < n.requiredReads():
		return fmt.Sprintf("reads must be %s, but are %s: %s", n.requiredReads(), c.Reads, c.GivesUp)
	case c.Loses != "" && n.losesNothing():
		return "may lose acknowledged writes: " + c.Loses
	case nodes < capable.MinNodes || capable.MaxNodes > 0 && nodes > capable.MaxNodes:
		return fmt.Sprintf("cannot form a cluster of %d nodes", nodes)
	case n.Load.Workload == "e" && !capable.Scan:
		return "workload e needs scans, which it lacks"
	}
	if err := db.Check(nodes, c.Options); err != nil {
		return err.Error()
	}
	return ""
}

func (n Needs) wholePlace() database.Placement {
	var nodes []string
	for _, x := range n.built.Nodes {
		if x.Role != topology.Client {
			nodes = append(nodes, x.Name)
		}
	}
	return n.placeOf(nodes)
}

// placeOf returns the part of the cloud with these nodes. Near is the node closest to all clients, among
// those that no bad day disconnects: a leader should not be where an outage is expected.
func (n Needs) placeOf(nodes []string) database.Placement {
	p := database.Placement{Nodes: nodes}
	site := map[string]string{}
	for _, x := range n.built.Nodes {
		site[x.Name] = x.Site
	}
	lost := func(node string) bool {
		return !slices.Contains(n.Client, site[node]) && slices.ContainsFunc(n.BadDays, func(d BadDay) bool { return d.SiteLost == site[node] })
	}
	if near := nearestNodes(n.built, nodes); len(near) > 0 {
		p.Near = near[max(0, slices.IndexFunc(near, func(node string) bool { return !lost(node) }))]
		p.Site = site[p.Near]
	}
	return p
}

// nearestNodes sorts nodes by their total distance from all clients. A missing link counts as the longest
// one.
func nearestNodes(t topology.Topology, nodes []string) []string {
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

const (
	// reducedMembers is the cluster size for databases that this machine cannot run on all nodes: the
	// smallest that survives the loss of one.
	reducedMembers = 3
	// maxMemoryShare is the share of this machine's memory that members may use.
	maxMemoryShare = 0.8
)

// fitMemory returns the part of a place that fits this machine's memory, and why it is not all of it.
func (n Needs) fitMemory(db database.Database, whole database.Placement, memory int64) (place database.Placement, why string) {
	each, nodes := db.Capabilities().Memory, len(whole.Nodes)
	if memory <= 0 || nodes <= reducedMembers || float64(each)*float64(nodes) <= maxMemoryShare*float64(memory) {
		return whole, ""
	}
	return n.smallPlace(whole), fmt.Sprintf("%d members need %.1f GB, but this machine has %.1f GB", nodes,
		float64(each)*float64(nodes)/1e9, float64(memory)/1e9)
}

// smallPlace returns a place with reducedMembers nodes: one at each site of a bad day, so that it affects
// them, then those nearest to the clients.
func (n Needs) smallPlace(whole database.Placement) database.Placement {
	var named []string
	for _, d := range n.BadDays {
		for _, site := range []string{d.SiteLost, d.farSite()} {
			i := slices.IndexFunc(n.built.Nodes, func(x topology.Node) bool {
				return x.Role != topology.Client && (x.Site == site ||
					x.Name == site)
			})
			if site != "" && i >= 0 && !slices.Contains(named, n.built.Nodes[i].Name) && len(named) < reducedMembers-1 {
				named = append(named, n.built.Nodes[i].Name)
			}
		}
	}
	for _, x := range nearestNodes(n.built, whole.Nodes) {
		if len(named) < reducedMembers && !slices.Contains(named, x) {
			named = append(named, x)
		}
	}
	return n.placeOf(slices.DeleteFunc(slices.Clone(whole.Nodes), func(x string) bool { return !slices.Contains(named, x) }))
}

// reduceMembers measures a candidate on fewer nodes from now on, because this machine's CPUs limit it. The
// limited trials decided nothing.
func (c *Contest) reduceMembers(id, why string) {
	x := c.byID[id]
	place := c.Needs.wholePlace()
	known := slices.ContainsFunc(c.race.Results(), func(r race.Result) bool { return r.Candidate == id && r.Void == "" })
	if known || x.Own != "" || len(x.Members) > 0 || len(place.Nodes) <= reducedMembers {
		return
	}
	i := slices.IndexFunc(c.registry, func(a database.About) bool { return a.Name == x.Database })
	place = c.Needs.smallPlace(place)
	for _, choice := range c.registry[i].Choices(place) {
		if choice.Name != x.Choice.Name || c.registry[i].New().Check(len(place.Nodes), choice.Options) != nil {
			continue
		}
		x.Choice, x.Members, x.Reduced = choice, place.Nodes, fmt.Sprintf("on all %d nodes %s", len(c.Needs.wholePlace().Nodes), why)
		c.byID[id] = x
		c.Candidates[slices.IndexFunc(c.Candidates, func(o Candidate) bool { return o.ID() == id })] = x
	}
}
