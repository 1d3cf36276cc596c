package choose

import (
	"slices"
	"strings"
	"time"

	"skerry/internal/base/unit"
)

// anyOf is written where a link or a node is drawn at random, the same for all candidates.
const anyOf = "any"

// Label is how results call the day.
func (d BadDay) Label() string {
	switch {
	case d.Name != "":
		return d.Name
	case d.SiteLost != "":
		return "site_lost " + d.SiteLost
	case d.LinkCut != "":
		return "link_cut " + d.LinkCut
	case d.Far != nil:
		return "far " + d.Far.Of
	case d.Flap != "":
		return "flap " + d.Flap
	case d.Killed != "":
		return "killed " + d.Killed
	case len(d.Events) > 0:
		return "events " + d.Events[0].Label()
	}
	return ""
}

// farSite is the site whose links get longer, "" for none.
func (d BadDay) farSite() string {
	if d.Far == nil {
		return ""
	}
	return d.Far.Of
}

// event is the name that metrics know what happens by.
func (d BadDay) event() string {
	if kind, _, _ := strings.Cut(d.Label(), " "); d.Name == "" {
		return kind
	}
	return d.Name
}

// has tells whether something of that name happens on the day.
func (d BadDay) has(name string) bool {
	for _, e := range d.Events {
		if e.Name == name || e.Kind() == name {
			return true
		}
	}
	return len(d.Events) == 0 && (d.event() == name || d.Label() == name)
}

// happens are the events of the day, as an experiment has them.
func (n Needs) happens(d BadDay) []any {
	if len(d.Events) > 0 {
		events := make([]any, len(d.Events))
		for i, e := range d.Events {
			events[i] = e
		}
		return events
	}
	e := map[string]any{"name": d.event(), "at": n.Measure.String(), "for": n.Lasts.String()}
	switch {
	case d.SiteLost != "":
		e["link_down"] = n.reaching(d.SiteLost)
	case d.LinkCut != "":
		e["link_down"] = n.links(d.LinkCut)
	case d.Far != nil:
		e["latency"] = map[string]any{"of": d.Far.Of, "scale": d.Far.Scale}
	case d.Flap != "":
		flap := n.links(d.Flap)
		flap["down"], flap["up"] = "1s", "2s"
		e["link_flap"] = flap
	case d.Killed == anyOf:
		e["kill"] = map[string]any{"nodes": "data", "choose": "random"}
	case d.Killed != "":
		e["kill"] = d.Killed
	}
	return []any{e}
}

// links are those that a link's ends, a site or "any" stand for.
func (n Needs) links(text string) map[string]any {
	if text == anyOf {
		return map[string]any{"choose": "random"}
	}
	if a, b, pair := strings.Cut(text, "~"); pair {
		return map[string]any{"between": []string{a, b}}
	}
	return n.reaching(text)
}

// reaching are a site's links. A client that is at the site goes on reaching the nodes there, as those aboard a ship do:
// then they are the links to other sites.
func (n Needs) reaching(site string) map[string]any {
	if !slices.Contains(n.Client, site) {
		return map[string]any{"of": site}
	}
	at := map[string]string{}
	for _, x := range n.built.Nodes {
		at[x.Name] = x.Site
	}
	var ids []string
	for _, l := range n.built.Links {
		if (at[l.A] == site) != (at[l.B] == site) {
			ids = append(ids, l.ID)
		}
	}
	return map[string]any{"ids": ids}
}

// lasts is how long a day is measured; 0 where its events say it.
func (n Needs) lasts(d *BadDay) unit.Duration {
	if d == nil {
		return n.Measure
	}
	return 2*n.Measure + n.Lasts
}

// setup is what a heat takes beside its measurement as long as none has been seen.
const setup = 20 * time.Second
