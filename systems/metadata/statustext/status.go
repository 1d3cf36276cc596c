// Package statustext formats the status of a metadata server as text.
package statustext

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/protocol"
)

// WriteStatus writes a status as a table. all has the reachable replicas of all servers of the tree, by server.
func WriteStatus(out io.Writer, s protocol.Status, all map[string][]protocol.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	t, j := s.Tree, s.Journal
	fmt.Fprintf(w, "directories\t%d\n", t.Directories)
	fmt.Fprintf(w, "files\t%d, %d bytes\n", t.Files, t.Bytes)
	fmt.Fprintf(w, "journal\t%d records, %d bytes of log, %d fsyncs, the longest took %s\n", j.Index, j.LogBytes, j.Groups,
		time.Duration(j.LongestSync*1e9).Round(10*time.Microsecond))
	fmt.Fprintf(w, "snapshot\tof %d records, %d bytes\n", j.SnapshotIndex, j.SnapshotBytes)
	if j.Broken != "" {
		fmt.Fprintf(w, "writes\trefused: %s\n", j.Broken)
	}
	fmt.Fprintf(w, "locks\t%d waits, %s in total; %d reads restarted\n", t.LockWaits, time.Duration(t.LockWaitNS), t.ReadRetries)
	fmt.Fprintf(w, "running for\t%s, after a recovery of %s\n",
		time.Duration(s.Uptime*float64(time.Second)).Round(time.Second), s.Recovery.Took.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(s.Servers)) {
		what := ""
		if name == s.Root {
			what = ", holds the root"
		}
		if name == s.Name {
			what += ", this one"
		}
		if len(all[name]) == 0 {
			what += ", unreachable"
		} else {
			what += fmt.Sprintf(", %.0f operations/s", protocol.SumLoad(all[name]).Rate)
		}
		if n, ok := s.Asked[name]; ok {
			what += fmt.Sprintf(", %d requests forwarded from here", n)
		}
		fmt.Fprintf(w, "server %s\tat %s%s\n", name, s.Servers[name], what)
	}
	writeLoad(w, s, all[s.Name])
	if s.Balancer != nil {
		fmt.Fprintf(w, "balancer\t%d moves, %d refused; %s\n", s.Balancer.Moves, s.Balancer.Refused, s.Balancer.Last)
	}
	writeClaims(w, all)
	for _, t := range s.Transactions {
		if t.Watching {
			continue
		}
		fmt.Fprintf(w, "transaction %s\tof %s, holds %s\n", t.Name, cmp.Or(t.Coordinator, "this server"), strings.Join(t.Locks, " "))
	}
	if s.Group != nil {
		writeGroup(w, *s.Group)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Subtrees)) {
		fmt.Fprintf(w, "%s\tis on %s\n", path, s.Subtrees[path])
	}
	return w.Flush()
}

func writeGroup(w io.Writer, g consensus.Status) {
	fmt.Fprintf(w, "replica\t%s of %s, %s, term %d, %d entries committed\n", g.Self.Name, g.Cluster, g.State, g.Term, g.Commit)
	for _, m := range g.Members {
		how := "unreachable"
		switch {
		case m.ID == g.Leader:
			how = "leads"
		case m.Connected || m.ID == g.Self.ID:
			how = "follows"
		}
		if m.Error != "" {
			how += ": " + m.Error
		}
		fmt.Fprintf(w, "  %s\t%s at %s, %s\n", m.Name, m.Role, m.Addr, how)
	}
}

const hottest = 10

// writeLoad writes a server's load from the statuses of its replicas. replicas is empty for a server that shares no tree.
func writeLoad(w io.Writer, s protocol.Status, replicas []protocol.Status) {
	if len(replicas) == 0 {
		replicas = []protocol.Status{s}
	}
	l := protocol.SumLoad(replicas)
	if len(s.Servers) == 0 && s.Load != nil {
		fmt.Fprintf(w, "load\t%.0f operations/s\n", l.Rate)
	}
	for _, d := range l.Directories[:min(hottest, len(l.Directories))] {
		fmt.Fprintf(w, "hot\t%.0f operations/s in %s\n", d.Rate, metadata.Quote(d.Path))
	}
}

// writeClaims warns of subtrees that exist more than once.
func writeClaims(w io.Writer, all map[string][]protocol.Status) {
	servers := make(map[string]cluster.Holding)
	for name, replicas := range all {
		if len(replicas) > 0 {
			servers[name] = cluster.Holding{Holds: replicas[0].Holds, Subtrees: replicas[0].Subtrees}
		}
	}
	for _, c := range cluster.FindClaims(servers) {
		fmt.Fprintf(w, "warning\t%s are the same subtree, unless it is moving: ", strings.Join(c.Holders, " and "))
		if c.Holder == "" {
			fmt.Fprintln(w, "no reachable virtual directory leads to any of them")
		} else {
			fmt.Fprintf(w, "%s is valid, named by %s\n", c.Holder, c.By)
		}
	}
}
