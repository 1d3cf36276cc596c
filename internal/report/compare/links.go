package compare

import (
	"fmt"
	"text/tabwriter"

	"skerry/internal/record"
	"skerry/internal/report"
)

// LinkPair is a link of both sides.
type LinkPair struct {
	From string     `json:"from"`
	To   string     `json:"to"`
	A    LinkFigure `json:"a"`
	B    LinkFigure `json:"b"`
	// Ratio is B's round trip divided by A's, 0 if either is unknown.
	Ratio float64 `json:"ratio,omitempty"`
}

// LinkFigure is the mean over one side's trials of the measurements of a link.
type LinkFigure struct {
	// Real marks a link without emulation. SetMS is the configured round trip of an emulated link.
	Real  bool    `json:"real,omitempty"`
	SetMS float64 `json:"set_rtt_ms,omitempty"`
	// RTTMS is the median round trip: of a real link during the measurement, of an emulated link
	// before it.
	RTTMS float64 `json:"rtt_ms"`
	// P99MS is of the same probes. Loss is the share of lost probes, of real links only.
	P99MS float64 `json:"rtt_p99_ms"`
	Loss  float64 `json:"loss,omitempty"`

	trials int
}

func (f LinkFigure) String() string {
	switch {
	case f.trials == 0:
		return "no answer"
	case f.Real:
		return fmt.Sprintf("%.2f ms, p99 %.2f, %s lost, real", f.RTTMS, f.P99MS, formatPercent(f.Loss))
	}
	return fmt.Sprintf("%.2f ms, p99 %.2f, set to %.2f", f.RTTMS, f.P99MS, f.SetMS)
}

type ends [2]string

// pairLinks returns the links that both sides have, nil if all of them are emulated.
func pairLinks(a, b Side) (pairs []LinkPair) {
	order, of := a.linkFigures()
	_, there := b.linkFigures()
	real := false
	for _, at := range order {
		x, y := of[at], there[at]
		if y == nil {
			continue
		}
		real = real || x.Real || y.Real
		p := LinkPair{From: at[0], To: at[1], A: *x, B: *y}
		if x.RTTMS > 0 && y.RTTMS > 0 {
			p.Ratio = y.RTTMS / x.RTTMS
		}
		pairs = append(pairs, p)
	}
	if !real {
		return nil
	}
	return pairs
}

// linkFigures returns the first link of each pair of nodes.
func (s Side) linkFigures() (order []ends, of map[ends]*LinkFigure) {
	of = map[ends]*LinkFigure{}
	for _, t := range s.trials {
		seen := map[ends]bool{}
		for _, l := range t.Fidelity.Links {
			at := ends{min(l.From, l.To), max(l.From, l.To)}
			if seen[at] {
				continue
			}
			seen[at] = true
			if of[at] == nil {
				of[at] = &LinkFigure{Real: l.Real, SetMS: l.SetRTTMS}
				order = append(order, at)
			}
			of[at].add(l)
		}
	}
	return order, of
}

func (f *LinkFigure) add(l record.LinkFidelity) {
	rtt, p99, loss := l.RTTMS, l.RTTP99MS, 0.0
	if l.Seen != nil && l.Seen.Sent > l.Seen.Lost {
		rtt, p99, loss = l.Seen.MedianMS, l.Seen.P99MS, l.Seen.Loss()
	}
	if !l.Answered {
		return
	}
	f.trials++
	n := float64(f.trials)
	f.RTTMS, f.P99MS, f.Loss = f.RTTMS+(rtt-f.RTTMS)/n, f.P99MS+(p99-f.P99MS)/n, f.Loss+(loss-f.Loss)/n
}

func (p Pair) linkRows() (rows [][]string) {
	for _, l := range p.Links {
		ratio := "–"
		if l.Ratio > 0 {
			ratio = fmt.Sprintf("%.3f", l.Ratio)
		}
		rows = append(rows, []string{l.From + " – " + l.To, l.A.String(), l.B.String(), ratio})
	}
	return rows
}

func writeLinks(p report.Printer, pair Pair) {
	p.Linef("")
	p.Linef("Round trips of links")
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "link\tA\tB\tB/A")
	for _, r := range pair.linkRows() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r[0], r[1], r[2], r[3])
	}
	_ = t.Flush() // p keeps the error
}
