package statustext

import (
	"fmt"
	"io"
	"strings"

	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/protocol"
)

// hottest is how many directories are printed.
const hottest = 10

// writeLoad prints what a server has to do; replicas are all of it, none for one that has
// its tree alone.
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

// writeClaims warns of subtrees that several servers have.
func writeClaims(w io.Writer, all map[string][]protocol.Status) {
	servers := make(map[string]cluster.Holding)
	for name, replicas := range all {
		if len(replicas) > 0 {
			servers[name] = cluster.Holding{Holds: replicas[0].Holds, Subtrees: replicas[0].Subtrees}
		}
	}
	for _, c := range cluster.FindClaims(servers) {
		fmt.Fprintf(w, "warning\t%s are one subtree, or it is on its way: ", strings.Join(c.Holders, " and "))
		if c.Holder == "" {
			fmt.Fprintln(w, "no virtual directory of a server in reach leads to any")
		} else {
			fmt.Fprintf(w, "%s holds, by %s\n", c.Holder, c.By)
		}
	}
}
