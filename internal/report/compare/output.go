package compare

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"skerry/internal/record/metric"
	"skerry/internal/report"
)

const significant = 0.05

func (m Metric) describe() string {
	a, b := m.Unit.Format(m.A.Mean), m.Unit.Format(m.B.Mean)
	if m.A.Mean == m.B.Mean {
		return fmt.Sprintf("%s is the same on both sides, %s.", m.Name, a)
	}
	what := "higher"
	if m.B.Mean < m.A.Mean {
		what = "lower"
	}
	head := fmt.Sprintf("%s is %s in B: %s against %s", m.Name, what, b, a)
	if m.Change != nil {
		head = fmt.Sprintf("%s is %s %s in B: %s against %s", m.Name, formatPercent(math.Abs(*m.Change)), what, b, a)
	}
	switch {
	case m.HedgesG == nil && (m.A.N < 2 || m.B.N < 2):
		return head + "; one repetition cannot distinguish this from noise."
	case m.P == nil:
		return head + "."
	case *m.P < significant:
		return fmt.Sprintf("%s; chance alone gives such a difference in %s of cases%s.", head, formatPercent(*m.P), m.effectSize())
	case m.LeastP >= significant:
		return fmt.Sprintf("%s; so few repetitions (%d and %d) cannot distinguish this from noise: p cannot be below %.2g.", head, m.A.N,
			m.B.N, m.LeastP)
	}
	return fmt.Sprintf("%s; this may be chance, which gives such a difference in %s of cases.", head, formatPercent(*m.P))
}

const negligibleEffect = 0.2

// effectSize names an effect size as in Cohen, "Statistical Power Analysis", 1988.
func (m Metric) effectSize() string {
	if m.HedgesG == nil {
		return ""
	}
	g := math.Abs(*m.HedgesG)
	word := "a negligible effect"
	switch {
	case g >= 0.8:
		word = "a large effect"
	case g >= 0.5:
		word = "a medium effect"
	case g >= negligibleEffect:
		word = "a small effect"
	}
	return fmt.Sprintf(" (%s, g %s)", word, formatHundredths(g))
}

func formatPercent(share float64) string {
	if share < 0.0095 {
		return strconv.FormatFloat(100*share, 'g', 2, 64) + " %"
	}
	return strconv.FormatFloat(100*share, 'f', 0, 64) + " %"
}

func formatHundredths(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func (p Pair) shownMetrics(all bool) (metrics []Metric) {
	for _, m := range p.Metrics {
		if (all || m.Leading) && m.SameAs == "" {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// Text prints tables and sentences. all includes every metric.
func (r Report) Text(w io.Writer, all bool) error {
	p := report.NewPrinter(w)
	for i, pair := range r.Pairs {
		if i > 0 {
			p.Linef("")
		}
		p.Linef("A  %s", pair.A)
		p.Linef("B  %s", pair.B)
		p.Linef("")
		writeTable(p, pair, all)
		p.Linef("")
		for _, m := range pair.shownMetrics(all) {
			if m.IsNotable() {
				p.Linef("%s", m.Sentence)
			}
		}
		for _, c := range pair.Censored {
			p.Linef("%s", c)
		}
		if len(pair.Links) > 0 {
			writeLinks(p, pair)
		}
		if pair.CPU != nil {
			writeCPU(p, *pair.CPU)
		}
	}
	for _, n := range r.Notes {
		p.Linef("note: %s", n)
	}
	p.Linef("")
	p.Linef("±: 95 %% confidence interval over repetitions. g: Hedges' g, positive if B is higher; uncorrected: without the")
	p.Linef("small-sample correction. p: permutation test, seed %d. Of twenty equal metrics one has p < 0.05 by chance.", r.Seed)
	return p.Flush()
}

func (s Side) String() string {
	text := fmt.Sprintf("%s, cell %d: %s; %s", s.Run, s.Cell, describeParameters(s.Parameters), report.Plural(len(s.Trials), "repetition"))
	if s.Suspect {
		text += ", all of them suspect"
	}
	return text
}

func writeTable(p report.Printer, pair Pair, all bool) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "metric\tA mean\t±\tSD\tvariance\tB mean\t±\tSD\tvariance\tchange\tg\tuncorrected\tp\t")
	for _, m := range pair.shownMetrics(all) {
		change := "–"
		if m.Change != nil {
			change = fmt.Sprintf("%+.1f %%", 100**m.Change)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", m.Name, formatSide(m.A, m.Unit), formatSide(m.B, m.Unit), change,
			formatOptional(m.HedgesG, formatHundredths)+"\t"+formatOptional(m.GUncorrected, formatHundredths),
			formatOptional(m.P, func(v float64) string { return strconv.FormatFloat(v, 'g', 2, 64) }))
	}
	_ = t.Flush() // p keeps the error
}

// formatSide returns the four columns of one side. The variance is in the square of the base unit.
func formatSide(f SideFigures, u metric.Unit) string {
	variance := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return u.Format(f.Mean) + "\t" + formatOptional(f.CI95, u.Format) + "\t" + formatOptional(f.SD, u.Format) + "\t" +
		formatOptional(f.Variance, variance)
}

func formatOptional(v *float64, write func(float64) string) string {
	if v == nil {
		return "–"
	}
	return write(*v)
}

func writeCPU(p report.Printer, c CPU) {
	at := func(s CPUSide, q int) string { return strconv.FormatFloat(s.CDF[q-1].X, 'g', 3, 64) }
	p.Linef("")
	p.Linef("CPU of data nodes over seconds, %s", c.Unit)
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmean\tSD\tvariance\tp5\tp25\tp50\tp75\tp95\t")
	for _, s := range []struct {
		name string
		CPUSide
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%.3g\t%s\t%s\t%s\t%s\t%s\t\n", s.name, s.Mean, s.SD, s.Variance,
			at(s.CPUSide, 5), at(s.CPUSide, 25), at(s.CPUSide, 50), at(s.CPUSide, 75), at(s.CPUSide, 95))
	}
	_ = t.Flush() // p keeps the error
	if c.GOfSeconds != nil {
		p.Linef("g over seconds, as in the original papers: %s (seconds of one run are not independent)", formatHundredths(*c.GOfSeconds))
	}
}
