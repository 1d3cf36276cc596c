package compare

import (
	"fmt"
	"text/tabwriter"

	"skerry/internal/record"
)

// LinkPair is a link of both sides.
type LinkPair struct {
	From string     `json:"from"`
	To   string     `json:"to"`
	A    LinkFigure `json:"a"`
	B    LinkFigure `json:"b"`
	// Ratio is B's round trip over A's, 0 where either is not known.
	Ratio float64 `json:"ratio,omitempty"`
}

// LinkFigure is what one side's trials have measured of a link, on average.
type LinkFigure struct {
	// Real says that the link was left as it is; else SetMS is the round trip that was asked for.
	Real  bool    `json:"real,omitempty"`
	SetMS float64 `json:"set_rtt_ms,omitempty"`
	// RTTMS is the median round trip: of a real link while trials measured, else of the echoes before.
	RTTMS float64 `json:"rtt_ms"`
	// P99MS is of the same echoes; Loss, of real links alone, the share that was lost.
	P99MS float64 `json:"rtt_p99_ms"`
	Loss  float64 `json:"loss,omitempty"`

	trials int
}

// String says it in a few words.
func (f LinkFigure) String() string {
	switch {
	case f.trials == 0:
		return "no answer"
	case f.Real:
		return fmt.Sprintf("%.2f ms, p99 %.2f, %s lost, real", f.RTTMS, f.P99MS, formatPercent(f.Loss))
	}
	return fmt.Sprintf("%.2f ms, p99 %.2f, set to %.2f", f.RTTMS, f.P99MS, f.SetMS)
}

// ends are a link's nodes, in the order of their names.
type ends [2]string

// pairLinks are the links that both sides have, where any of them is real on one side; nil where all are
// emulated.
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

// linkFigures are the first links of pairs of nodes, over the side's trials.
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

// add takes a trial into the means.
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

// rows are the links as a table has them.
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

// writeLinks prints the round trips of both sides.
func (p *printer) writeLinks(pair Pair) {
	p.linef("")
	p.linef("Round trips of links")
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "link\tA\tB\tB/A")
	for _, r := range pair.linkRows() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r[0], r[1], r[2], r[3])
	}
	if err := t.Flush(); p.err == nil {
		p.err = err
	}
}
