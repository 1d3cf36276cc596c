package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
)

const maxFindings = 6

func (m *model) findings() []string {
	out := append(m.suspectFinding(), m.machinesFinding()...)
	out = append(out, m.calibrationFinding()...)
	out = append(out, m.throughputFindings()...)
	out = append(out, m.bottleneckFinding()...)
	out = append(out, m.latencyFinding()...)
	out = append(out, m.trafficFinding()...)
	out = append(out, m.dataFinding()...)
	out = append(out, m.loadFindings()...)
	out = append(out, m.errorFinding()...)
	out = append(out, m.trustFinding()...)
	return out
}

func (m *model) suspectFinding() []string {
	weak, measured := 0, 0
	for _, c := range m.cells {
		if len(c.used) > 0 {
			measured++
		}
		if c.weak {
			weak++
		}
	}
	if weak == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("Caution: %d of %s had no valid trial; the figures come from suspect trials.", weak, Plural(measured, "cell"))}
	if remedy := m.commonRemedy(); weak == measured && remedy != "" {
		out = append(out, "No trial is valid because of this machine: "+remedy+".")
	}
	return out
}

func (m *model) commonRemedy() string {
	suspect := map[string]int{} // trials
	for _, t := range m.dir.Summary.Trials {
		counted := map[string]bool{}
		for _, k := range t.Verdict.Kinds {
			if r := verdict.Kind(k).Remedy(); r != "" && !counted[r] {
				counted[r] = true
				suspect[r]++
			}
		}
	}
	best := ""
	for _, r := range slices.Sorted(maps.Keys(suspect)) {
		if suspect[r] > suspect[best] {
			best = r
		}
	}
	return best
}

type scaleChange struct {
	group       *group
	first, last *cell
	ratio       float64 // first divided by last
}

func (m *model) scaleChanges(value func(*cell) float64) (out []scaleChange) {
	for _, g := range m.groups {
		first, last := g.extremes()
		if first == nil || value(first) <= 0 || value(last) <= 0 {
			continue
		}
		out = append(out, scaleChange{g, first, last, value(first) / value(last)})
	}
	return out
}

func (m *model) throughputFindings() (out []string) {
	if !m.scales.vary() {
		return m.extremesFinding()
	}
	changes := m.scaleChanges(func(c *cell) float64 { return c.goodput().Mean })
	slices.SortStableFunc(changes, func(a, b scaleChange) int { return cmp.Compare(b.ratio, a.ratio) })
	for i, c := range changes {
		if i == maxFindings {
			out = append(out, fmt.Sprintf("The other %s fall between %s and %s.", Plural(len(changes)-i, "combination"),
				formatFactor(changes[len(changes)-1].ratio), formatFactor(c.ratio)))
			break
		}
		out = append(out, m.throughputFinding(c))
	}
	return out
}

func (m *model) extremesFinding() []string {
	var cells []*cell
	for _, c := range m.cells {
		if len(c.used) > 0 {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		return nil
	}
	slices.SortStableFunc(cells, func(a, b *cell) int { return cmp.Compare(b.goodput().Mean, a.goodput().Mean) })
	first, last := cells[0], cells[len(cells)-1]
	switch {
	case first == last:
		return []string{fmt.Sprintf("Throughput of %s is %s ops/s.", m.cellName(first), interval(first.goodput()))}
	case intervalsOverlap(first.goodput(), last.goodput()):
		return []string{fmt.Sprintf("Throughput does not differ measurably between %s: %s to %s ops/s; the intervals overlap.",
			Plural(len(cells), "cell"), formatFigure(last.goodput().Mean), formatFigure(first.goodput().Mean))}
	}
	return []string{fmt.Sprintf("Throughput is highest with %s (%s ops/s) and lowest with %s (%s ops/s).",
		m.cellName(first), interval(first.goodput()), m.cellName(last), interval(last.goodput()))}
}

func (m *model) throughputFinding(c scaleChange) string {
	of := ""
	if c.group.label != "" {
		of = " of " + c.group.label
	}
	from, to := m.scales.phrase(c.first.scale), m.scales.phrase(c.last.scale)
	figures := fmt.Sprintf("%s to %s ops/s", formatFigure(c.first.goodput().Mean), formatFigure(c.last.goodput().Mean))
	switch {
	case intervalsOverlap(c.first.goodput(), c.last.goodput()):
		return fmt.Sprintf("Throughput%s does not differ measurably between %s and %s (%s; the intervals overlap).", of, from, to, figures)
	case c.ratio >= 1:
		return fmt.Sprintf("Throughput%s falls %s from %s to %s (%s).", of, formatFactor(c.ratio), from, to, figures)
	}
	return fmt.Sprintf("Throughput%s rises %s from %s to %s (%s).", of, formatFactor(1/c.ratio), from, to, figures)
}

func intervalsOverlap(a, b stats.Estimate) bool {
	return a.HasInterval() && b.HasInterval() && math.Abs(a.Mean-b.Mean) <= a.HalfWidth+b.HalfWidth
}

func (m *model) latencyFinding() []string {
	var worst scaleChange
	var of string
	for _, name := range m.operationNames() {
		for _, c := range m.scaleChanges(func(c *cell) float64 { return c.operation(name).latency.P99 }) {
			if of == "" || c.ratio < worst.ratio {
				worst, of = c, name
			}
		}
	}
	if of == "" || worst.ratio >= 1 {
		return nil
	}
	with := "The 99th percentile grows: "
	if len(m.groups) > 1 {
		with = "The 99th percentile grows most with " + worst.group.label + ": "
	}
	return []string{fmt.Sprintf("%s%s from %s ms at %s to %s ms at %s.", with, of,
		formatMillis(worst.first.operation(of).latency.P99), m.scales.phrase(worst.first.scale),
		formatMillis(worst.last.operation(of).latency.P99), m.scales.phrase(worst.last.scale))}
}

func (m *model) operationNames() (names []string) {
	for _, c := range m.cells {
		for _, o := range c.operations {
			names = append(names, o.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (m *model) trafficFinding() []string {
	changes := m.scaleChanges(func(c *cell) float64 { return c.perOperation().Mean })
	if len(changes) == 0 {
		return nil
	}
	lo, hi := math.Inf(1), 0.0
	for _, c := range changes {
		lo, hi = min(lo, 1/c.ratio), max(hi, 1/c.ratio)
	}
	from, to := m.scales.phrase(changes[0].first.scale), m.scales.phrase(changes[0].last.scale)
	if hi < 1.1 && lo > 0.9 {
		return []string{fmt.Sprintf("The traffic of an operation at %s is within 10 %% of that at %s.", from, to)}
	}
	times := fmt.Sprintf("%.2f", hi)
	if least := fmt.Sprintf("%.2f", lo); least != times {
		times = least + " to " + times
	}
	return []string{fmt.Sprintf("An operation sends %s times as many bytes at %s as at %s.", times, to, from)}
}

func (m *model) errorFinding() []string {
	var all record.Outcomes
	var worst *cell
	for _, c := range m.cells {
		o := outcomes(c.used)
		all.OK += o.OK
		all.Failed += o.Failed
		all.Unknown += o.Unknown
		all.Dropped += o.Dropped
		_, share := unsuccessful(o)
		if worst != nil {
			if _, most := unsuccessful(outcomes(worst.used)); share <= most {
				continue
			}
		}
		if share > 0 {
			worst = c
		}
	}
	n, share := unsuccessful(all)
	switch {
	case all.OK == 0 && n == 0:
		return nil
	case n == 0:
		return []string{fmt.Sprintf("All %s operations succeeded.", formatCount(all.OK))}
	}
	s := fmt.Sprintf("%s of %s operations did not succeed (%s: %s failed, %s unknown, %s dropped)", formatCount(n), formatCount(n+all.OK),
		formatPercent(share), formatCount(all.Failed), formatCount(all.Unknown), formatCount(all.Dropped))
	if _, most := unsuccessful(outcomes(worst.used)); len(m.cells) > 1 {
		s += fmt.Sprintf("; %s had the largest share (%s)", m.cellName(worst), formatPercent(most))
	}
	return []string{s + "."}
}

func (m *model) cellName(c *cell) string {
	if len(m.vary) == 0 {
		return describeParameters(m.fixed, c.parameters)
	}
	s := describeParameters(c.group.names, c.parameters)
	if slices.Contains(m.vary, paramScale) {
		if s != "" {
			s += " at "
		}
		s += m.scales.phrase(c.scale)
	}
	return s
}

func (m *model) trustFinding() []string {
	links, worst := 0, 0.0
	for _, c := range m.cells {
		for _, t := range c.used {
			for _, l := range t.Fidelity.Links {
				if l.Answered && !l.Real {
					links++
				}
			}
			worst = max(worst, t.Fidelity.WorstRTTErrorMS)
		}
	}
	if links == 0 {
		return m.realLinkFinding()
	}
	return append(m.realLinkFinding(), fmt.Sprintf("%s of links before the trials found round-trip times within %s ms of the "+
		"configured values.",
		Plural(links, "measurement"), formatHundredths(worst)))
}

func (m *model) realLinkFinding() []string {
	links, least, most, sent, lost := map[string]bool{}, math.Inf(1), 0.0, int64(0), int64(0)
	for _, c := range m.cells {
		for _, t := range c.used {
			for _, l := range t.Fidelity.Links {
				if l.Seen == nil || l.Seen.Sent == l.Seen.Lost {
					continue
				}
				links[l.ID] = true
				least, most = min(least, l.Seen.MedianMS), max(most, l.Seen.MedianMS)
				sent, lost = sent+l.Seen.Sent, lost+l.Seen.Lost
			}
		}
	}
	if len(links) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Real links, not emulated: %d, with median round-trip times of %s ms and %s of probes lost during "+
		"the measurement.",
		len(links), formatRange(least, most, formatHundredths), formatPercent(float64(lost)/float64(sent)))}
}
