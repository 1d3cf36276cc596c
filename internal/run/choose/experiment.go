package choose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/record/metric"
)

// anyTarget selects a random link or node, the same for all candidates.
const anyTarget = "any"

// Label is the day's name in results.
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

func (d BadDay) farSite() string {
	if d.Far == nil {
		return ""
	}
	return d.Far.Of
}

func (d BadDay) eventName() string {
	if kind, _, _ := strings.Cut(d.Label(), " "); d.Name == "" {
		return kind
	}
	return d.Name
}

func (d BadDay) hasEvent(name string) bool {
	for _, e := range d.Events {
		if e.Name == name || e.Kind() == name {
			return true
		}
	}
	return len(d.Events) == 0 && (d.eventName() == name || d.Label() == name)
}

func (n Needs) dayEvents(d BadDay) []any {
	if len(d.Events) > 0 {
		events := make([]any, len(d.Events))
		for i, e := range d.Events {
			events[i] = e
		}
		return events
	}
	e := map[string]any{"name": d.eventName(), "at": n.Measure.String(), "for": n.Lasts.String()}
	switch {
	case d.SiteLost != "":
		e["link_down"] = n.siteLinks(d.SiteLost)
	case d.LinkCut != "":
		e["link_down"] = n.targetLinks(d.LinkCut)
	case d.Far != nil:
		e["latency"] = map[string]any{"of": d.Far.Of, "scale": d.Far.Scale}
	case d.Flap != "":
		flap := n.targetLinks(d.Flap)
		flap["down"], flap["up"] = "1s", "2s"
		e["link_flap"] = flap
	case d.Killed == anyTarget:
		e["kill"] = map[string]any{"nodes": "data", "choose": "random"}
	case d.Killed != "":
		e["kill"] = d.Killed
	}
	return []any{e}
}

// targetLinks selects the links between two ends, of a site, or a random link.
func (n Needs) targetLinks(text string) map[string]any {
	if text == anyTarget {
		return map[string]any{"choose": "random"}
	}
	if a, b, pair := strings.Cut(text, "~"); pair {
		return map[string]any{"between": []string{a, b}}
	}
	return n.siteLinks(text)
}

// siteLinks selects a site's links. If a client is at the site, like aboard a ship, only links to other
// sites are selected: the client still reaches the local nodes.
func (n Needs) siteLinks(site string) map[string]any {
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

func (n Needs) measureTime(d *BadDay) unit.Duration {
	if d == nil {
		return n.Measure
	}
	return 2*n.Measure + n.Lasts
}

const setupGuess = 20 * time.Second

// poolNames returns the names of several clients in metrics ("singapore.p99"), nil for a single one.
func (n Needs) poolNames() (names []string) {
	if len(n.Client) < 2 {
		return nil
	}
	for _, site := range n.Client {
		names = append(names, poolName(site))
	}
	return names
}

func poolName(site string) string {
	name := strings.ReplaceAll(Slug(site), "-", "_")
	if name == "" || name[0] < 'a' || metric.IsReserved(name) {
		name = "at_" + name
	}
	return name
}

func (n Needs) checkClients() (ps strict.Problems) {
	if len(n.Client) < 2 {
		return nil
	}
	report := func(path, hint, format string, args ...any) {
		ps = append(ps, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	for i, name := range n.poolNames() {
		if slices.Contains(n.poolNames()[:i], name) {
			report(fmt.Sprintf("client[%d]", i), "name each site once", "two clients are named %q", name)
		}
	}
	if w := n.Load.Workload; w == "d" || w == "e" {
		report("load.workload", "choose a, b, c or f, or one client",
			"workload %s inserts records; clients at several sites would use the same keys", w)
	}
	if n.Load.Records < int64(len(n.Client)) || n.Load.Threads < len(n.Client) {
		report("load", "raise records and threads", "%d records and %d threads are not enough for %d clients", n.Load.Records,
			n.Load.Threads, len(n.Client))
	}
	return ps
}

// workloads splits the load into equal parts, one per client: requests, connections and records.
func (n Needs) workloads() (pools []map[string]any) {
	k := int64(len(n.Client))
	share := func(of, i int64) int64 { return of*(i+1)/k - of*i/k }
	for i, name := range n.poolNames() {
		i := int64(i)
		w := n.workload(int(share(int64(n.Load.Threads), i)), n.Load.Target/float64(k))
		properties := map[string]string{"insertstart": fmt.Sprint(n.Load.Records * i / k), "insertcount": fmt.Sprint(share(n.Load.Records, i))}
		for key, v := range n.Load.Properties {
			properties[key] = v
		}
		w["properties"] = properties
		pool := map[string]any{"name": name, "workload": w}
		if i > 0 { // the first uses the experiment's client
			pool["client"] = n.Client[i]
		}
		pools = append(pools, pool)
	}
	return pools
}

// maxConnections bounds the requests in flight of all clients. On a bad day, requests to lost nodes wait
// for their timeout and must not block the others; PostgreSQL accepts 400 connections here.
const maxConnections = 256

func (n Needs) inFlight(threads int) int {
	return max(4*threads, maxConnections/max(1, len(n.Client)))
}

func (n Needs) workload(threads int, target float64) map[string]any {
	w := map[string]any{"name": n.Load.Workload, "records": n.Load.Records, "threads": threads}
	if target > 0 {
		w["target"], w["arrival"], w["in_flight"] = target, "constant", n.inFlight(threads)
	}
	if len(n.Load.Properties) > 0 {
		w["properties"] = n.Load.Properties
	}
	return w
}
