package lab

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/lab/service"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// PrintStatus prints labs, their nodes and their problems.
func PrintStatus(w io.Writer, labs []Info, now time.Time) error {
	t := newTabWriter(w)
	fmt.Fprintln(t, "LAB\tSTATE\tNODES\tLINKS\tSCALE\tENGINE\tPROCESSES\tAGE")
	for _, l := range labs {
		age := "-"
		if !l.Created.IsZero() {
			age = unit.Duration(now.Sub(l.Created).Round(time.Second)).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%g\t%s\t%d\t%s\n", l.Name, l.State, len(l.Nodes), len(l.Links), l.Factor, cmp.Or(l.Engine, "-"),
			l.Processes, age)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range labs {
		if err := printDetails(w, l); err != nil {
			return err
		}
	}
	return nil
}

func printDetails(w io.Writer, l Info) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: topology %s", l.Name, cmp.Or(l.Topology, "unknown"))
	if l.Engine != "" {
		fmt.Fprintf(&b, ", %s links: %s", l.Engine, strings.ReplaceAll(l.Why, "\n", "; "))
	}
	b.WriteString("\n")
	if l.Problem != "" {
		fmt.Fprintf(&b, "  %s: %s\n", l.State, l.Problem)
	}
	if l.OwnerPID != 0 {
		fmt.Fprintf(&b, "  belongs to process %d\n", l.OwnerPID)
	}
	for _, warning := range l.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", warning)
	}
	t := newTabWriter(&b)
	for _, n := range l.Nodes {
		where := n.Netns
		if n.Machine != "" {
			where = n.Machine + "\t" + where
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", n.Name, n.Addr, where)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l.Service != nil {
		fmt.Fprintf(&b, "  service %s, %s\n", service.FullName(l.Service.Service), l.Service.Service.Kind)
		for _, line := range l.Service.DescribeAddresses() {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PrintLinks prints the links of a lab: one line each, or one per direction if the two differ.
func PrintLinks(w io.Writer, l Info) error { return printLinkTable(w, l.Links, "DEVICE\t") }

// PrintPlannedLinks prints the links of a topology in the same form, at scale 1.
func PrintPlannedLinks(w io.Writer, t []topology.Link) error {
	links := make([]Link, len(t))
	for i, k := range t {
		links[i] = Link{ID: k.ID, A: k.A, B: k.B, AB: k.AB, BA: k.BA}
	}
	return printLinkTable(w, links, "")
}

// printLinkTable omits devices if their column has no title.
func printLinkTable(w io.Writer, links []Link, device string) error {
	t := newTabWriter(w)
	fmt.Fprintf(t, "LINK\tENDS\t%sONE WAY\tRTT\tBANDWIDTH\tLOSS\tOTHER\n", device)
	for _, k := range links {
		row := func(ends string, q link.Quality) {
			fmt.Fprintf(t, "%s\t%s\t", k.ID, ends)
			if device != "" {
				fmt.Fprintf(t, "%s\t", k.Device)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", formatLatency(q.Latency+k.Way), formatLatency(k.RTT()), unit.Bandwidth(q.Bandwidth),
				unit.Fraction(math.Round(1e6*q.LossShare())/1e6), formatOtherQualities(k, q))
		}
		if k.AB.Equal(k.BA) {
			row(k.A+" <> "+k.B, k.AB)
			continue
		}
		row(k.A+" > "+k.B, k.AB)
		row(k.B+" > "+k.A, k.BA)
	}
	return t.Flush()
}

func formatLatency(d time.Duration) string { return unit.Duration(d.Round(time.Microsecond)).String() }

// formatOtherQualities lists the less common qualities.
func formatOtherQualities(k Link, q link.Quality) string {
	var all []string
	add := func(given bool, format string, args ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(k.Real, "real")
	add(q.Down, "down")
	add(q.Jitter > 0, "jitter=%s", unit.Duration(q.Jitter))
	add(q.Distribution != "", "distribution=%s", q.Distribution)
	add(q.Queue > 0, "queue=%s", unit.Bytes(q.Queue))
	add(q.Duplicate > 0, "duplicate=%s", unit.Fraction(q.Duplicate))
	add(q.Reorder > 0, "reorder=%s", unit.Fraction(q.Reorder))
	add(q.Corrupt > 0, "corrupt=%s", unit.Fraction(q.Corrupt))
	if b := q.Burst; b != nil {
		add(true, "burst={p: %s, r: %s, h: %s, k: %s}", unit.Fraction(b.P), unit.Fraction(b.R), unit.Fraction(b.H), unit.Fraction(b.K))
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, " ")
}

// PrintDOT prints a lab as an undirected graph for Graphviz. Labels are round trips, bandwidths, and IDs that differ
// from the ends; `neato` uses the lengths.
func PrintDOT(w io.Writer, l Info) error {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s {\n  node [shape=box];\n", strconv.Quote(l.Name))
	for _, n := range l.Nodes {
		fmt.Fprintf(&b, "  %s [tooltip=%s];\n", strconv.Quote(n.Name), strconv.Quote(n.Addr))
	}
	for _, k := range l.Links {
		rtt := k.RTT()
		label := unit.Duration(rtt.Round(100 * time.Microsecond)).String()
		if k.ID != topology.LinkID(k.A, k.B) {
			label = k.ID + `\n` + label
		}
		if there, back := unit.Bandwidth(k.AB.Bandwidth), unit.Bandwidth(k.BA.Bandwidth); there != back {
			label += `\n` + there.String() + " > " + `\n` + "< " + back.String()
		} else if there > 0 {
			label += `\n` + there.String()
		}
		style := ""
		if k.AB.Down && k.BA.Down {
			style = ", style=dashed"
		}
		// Graphviz refuses a length of 0.
		fmt.Fprintf(&b, "  %s -- %s [label=\"%s\", len=%.2f%s];\n", strconv.Quote(k.A), strconv.Quote(k.B), label, max(0.5, rtt.Seconds()*20),
			style)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func newTabWriter(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }
