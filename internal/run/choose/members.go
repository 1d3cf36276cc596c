package choose

import (
	"fmt"
	"slices"

	"skerry/internal/database"
	"skerry/internal/evidence/race"
	"skerry/internal/topology"
)

const (
	// fewer is how many nodes carry a database that this machine cannot carry on all: as few as survive
	// the loss of one.
	fewer = 3
	// roomy is the share of this machine's memory that members may take.
	roomy = 0.8
)

// carried is the part of a place that this machine has the memory for, and why that is not all of it.
func (n Needs) carried(db database.Database, whole database.Place, memory int64) (place database.Place, why string) {
	each, nodes := db.Capabilities().Memory, len(whole.Nodes)
	if memory <= 0 || nodes <= fewer || float64(each)*float64(nodes) <= roomy*float64(memory) {
		return whole, ""
	}
	return n.fewer(whole), fmt.Sprintf("%d members need %.1f GB, and this machine has %.1f GB", nodes, float64(each)*float64(nodes)/1e9, float64(memory)/1e9)
}

// fewer is a place with few nodes: one at each site that a bad day names, so that it is a bad day for them
// too, then those that are nearest to the clients.
func (n Needs) fewer(whole database.Place) database.Place {
	var named []string
	for _, d := range n.BadDays {
		for _, site := range []string{d.SiteLost, d.farSite()} {
			i := slices.IndexFunc(n.built.Nodes, func(x topology.Node) bool { return x.Role != topology.Client && (x.Site == site || x.Name == site) })
			if site != "" && i >= 0 && !slices.Contains(named, n.built.Nodes[i].Name) && len(named) < fewer-1 {
				named = append(named, n.built.Nodes[i].Name)
			}
		}
	}
	for _, x := range nearest(n.built, whole.Nodes) {
		if len(named) < fewer && !slices.Contains(named, x) {
			named = append(named, x)
		}
	}
	return n.placeOn(slices.DeleteFunc(slices.Clone(whole.Nodes), func(x string) bool { return !slices.Contains(named, x) }))
}

// reduce has a candidate that this machine's processors could not carry on all nodes be measured on fewer
// from now on. The cell that was bound by the machine has decided nothing.
func (c *Contest) reduce(id, why string) {
	x := c.byID[id]
	place := c.Needs.place()
	known := slices.ContainsFunc(c.race.Results(), func(r race.Result) bool { return r.Candidate == id && r.Void == "" })
	if known || len(x.Members) > 0 || len(place.Nodes) <= fewer {
		return
	}
	i := slices.IndexFunc(c.registry, func(a database.About) bool { return a.Name == x.Database })
	place = c.Needs.fewer(place)
	for _, choice := range c.registry[i].Choices(place) {
		if choice.Name != x.Choice.Name || c.registry[i].New().Check(len(place.Nodes), choice.Options) != nil {
			continue
		}
		x.Choice, x.Members, x.Reduced = choice, place.Nodes, fmt.Sprintf("on all %d nodes %s", len(c.Needs.place().Nodes), why)
		c.byID[id] = x
		c.Candidates[slices.IndexFunc(c.Candidates, func(o Candidate) bool { return o.ID() == id })] = x
	}
}
