package compare

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"skerry/internal/record/metric"
)

// significant is the p below which a difference is said to be more than noise.
const significant = 0.05

// sentence says in words what the figures say.
func (m Metric) sentence() string {
	a, b := m.Unit.Write(m.A.Mean), m.Unit.Write(m.B.Mean)
	if m.A.Mean == m.B.Mean {
		return fmt.Sprintf("%s is the same on both sides, %s.", m.Name, a)
	}
	what := "higher"
	if m.B.Mean < m.A.Mean {
		what = "lower"
	}
	head := fmt.Sprintf("%s is %s in B: %s against %s", m.Name, what, b, a)
	if m.Change != nil {
		head = fmt.Sprintf("%s is %s %s in B: %s against %s", m.Name, percent(abs(*m.Change)), what, b, a)
	}
	switch {
	case m.HedgesG == nil && (m.A.N < 2 || m.B.N < 2):
		return head + "; with one repetition nobody can tell that from noise."
	case m.P == nil:
		return head + "."
	case *m.P < significant:
		return fmt.Sprintf("%s; chance alone sets them so far apart in %s of cases%s.", head, percent(*m.P), m.size())
	case m.LeastP >= significant:
		return fmt.Sprintf("%s; so few repetitions (%d and %d) cannot tell that from noise: p cannot be below %.2g.", head, m.A.N, m.B.N, m.LeastP)
	}
	return fmt.Sprintf("%s; that may well be chance, which sets them so far apart in %s of cases.", head, percent(*m.P))
}

// negligible is the largest effect that Cohen calls so.
const negligible = 0.2

// size is Cohen's word for an effect ("Statistical Power Analysis", 1988).
func (m Metric) size() string {
	if m.HedgesG == nil {
		return ""
	}
	g := abs(*m.HedgesG)
	word := "a negligible effect"
	switch {
	case g >= 0.8:
		word = "a large effect"
	case g >= 0.5:
		word = "a medium effect"
	case g >= negligible:
		word = "a small effect"
	}
	return fmt.Sprintf(" (%s, g %s)", word, signed(g))
}

func percent(share float64) string {
	if share < 0.0095 {
		return strconv.FormatFloat(100*share, 'g', 2, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

func signed(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// shown are the metrics that are shown: the leading ones or all, none of them twice.
func (p Pair) shown(all bool) (metrics []Metric) {
	for _, m := range p.Metrics {
		if (all || m.Leading) && m.SameAs == "" {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// Text writes tables and sentences; all has every metric.
func (r Report) Text(w io.Writer, all bool) error {
	p := &printer{w: w}
	for i, pair := range r.Pairs {
		if i > 0 {
			p.linef("")
		}
		p.linef("A  %s", pair.A)
		p.linef("B  %s", pair.B)
		p.linef("")
		p.table(pair, all)
		p.linef("")
		for _, m := range pair.shown(all) {
			if m.Sized() {
				p.linef("%s", m.Sentence)
			}
		}
		for _, c := range pair.Censored {
			p.linef("%s", c)
		}
		if len(pair.Links) > 0 {
			p.links(pair)
		}
		if pair.CPU != nil {
			p.cpu(*pair.CPU)
		}
	}
	for _, n := range r.Notes {
		p.linef("note: %s", n)
	}
	p.linef("")
	p.linef("±: 95 %% confidence interval over repetitions. g: Hedges' g, positive where B is higher; uncorrected as the documents")
	p.linef("have it. p: permutation test, seed %d. Of twenty metrics that are alike one has p < 0.05 by chance.", r.Seed)
	return p.err
}

// String names a side on one line.
func (s Side) String() string {
	text := fmt.Sprintf("%s, cell %d: %s; %d repetitions", s.Run, s.Cell, say(s.Parameters), len(s.Trials))
	if s.Suspect {
		text += ", all of them suspect"
	}
	return text
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) linef(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) table(pair Pair, all bool) {
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "metric\tA mean\t±\tSD\tvariance\tB mean\t±\tSD\tvariance\tchange\tg\tuncorrected\tp\t")
	for _, m := range pair.shown(all) {
		change := "–"
		if m.Change != nil {
			change = fmt.Sprintf("%+.1f %%", 100**m.Change)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", m.Name, side(m.A, m.Unit), side(m.B, m.Unit), change,
			optional(m.HedgesG, signed)+"\t"+optional(m.GUncorrected, signed), optional(m.P, func(v float64) string { return strconv.FormatFloat(v, 'g', 2, 64) }))
	}
	if err := t.Flush(); p.err == nil {
		p.err = err
	}
}

// side is the four columns of one side. A variance is in the unit squared, of the base unit.
func side(f Figures, u metric.Unit) string {
	variance := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return u.Write(f.Mean) + "\t" + optional(f.CI95, u.Write) + "\t" + optional(f.SD, u.Write) + "\t" + optional(f.Variance, variance)
}

func optional(v *float64, write func(float64) string) string {
	if v == nil {
		return "–"
	}
	return write(*v)
}

// cpu says how the nodes' CPU was distributed; the page draws it.
func (p *printer) cpu(c CPU) {
	at := func(s CPUSide, q int) string { return strconv.FormatFloat(s.CDF[q-1].X, 'g', 3, 64) }
	p.linef("")
	p.linef("CPU of data nodes over seconds, %s", c.Unit)
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmean\tSD\tvariance\tp5\tp25\tp50\tp75\tp95\t")
	for _, s := range []struct {
		name string
		CPUSide
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%.3g\t%s\t%s\t%s\t%s\t%s\t\n", s.name, s.Mean, s.SD, s.Variance,
			at(s.CPUSide, 5), at(s.CPUSide, 25), at(s.CPUSide, 50), at(s.CPUSide, 75), at(s.CPUSide, 95))
	}
	if err := t.Flush(); p.err == nil {
		p.err = err
	}
	if c.GOfSeconds != nil {
		p.linef("g over seconds, as the documents compute it: %s (seconds of one run are not independent)", signed(*c.GOfSeconds))
	}
}
