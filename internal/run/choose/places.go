package choose

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/record/metric"
)

// pools are what experiments call the clients where there are several: their sites, as figures are
// named ("singapore.p99").
func (n Needs) pools() (names []string) {
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
	if name == "" || name[0] < 'a' || metric.Reserved(name) {
		name = "at_" + name
	}
	return name
}

// checkClients finds what several clients cannot do.
func (n Needs) checkClients() (ps strict.Problems) {
	if len(n.Client) < 2 {
		return nil
	}
	report := func(path, hint, format string, args ...any) {
		ps = append(ps, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	for i, name := range n.pools() {
		if slices.Contains(n.pools()[:i], name) {
			report(fmt.Sprintf("client[%d]", i), "name each site once", "two clients are called %q", name)
		}
	}
	if w := n.Load.Workload; w == "d" || w == "e" {
		report("load.workload", "choose a, b, c or f, or one client", "workload %s inserts records, which clients at several sites would do under the same keys", w)
	}
	if n.Load.Records < int64(len(n.Client)) || n.Load.Threads < len(n.Client) {
		report("load", "raise records and threads", "%d records and %d threads are not enough for %d clients", n.Load.Records, n.Load.Threads, len(n.Client))
	}
	return ps
}

// workloads are the parts of the load that come from each of several clients: each has an equal part
// of the requests, of the connections and of the records.
func (n Needs) workloads() (pools []map[string]any) {
	k := int64(len(n.Client))
	share := func(of, i int64) int64 { return of*(i+1)/k - of*i/k }
	for i, name := range n.pools() {
		i := int64(i)
		w := n.workload(int(share(int64(n.Load.Threads), i)), n.Load.Target/float64(k))
		properties := map[string]string{"insertstart": fmt.Sprint(n.Load.Records * i / k), "insertcount": fmt.Sprint(share(n.Load.Records, i))}
		for key, v := range n.Load.Properties {
			properties[key] = v
		}
		w["properties"] = properties
		pool := map[string]any{"name": name, "workload": w}
		if i > 0 { // the first stands where the experiment's client does
			pool["client"] = n.Client[i]
		}
		pools = append(pools, pool)
	}
	return pools
}

// connections bound the requests under way at all clients together. On a bad day those to what is lost wait for their timeout,
// and the others must not wait behind them; PostgreSQL takes 400 connections here.
const connections = 256

// inFlight is how many requests may be under way at one of the clients, which has so many threads.
func (n Needs) inFlight(threads int) int {
	return max(4*threads, connections/max(1, len(n.Client)))
}

// workload is what a client asks for.
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
