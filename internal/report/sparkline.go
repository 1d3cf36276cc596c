package report

import (
	"cmp"
	"strings"

	"skerry/internal/record"
)

// Sparks of rising height; dead marks a time in which nothing ended ok.
const (
	sparks = "▁▂▃▄▅▆▇█"
	dead   = '·'
)

// sparkWidth is how many characters a trial's time is told in.
const sparkWidth = 16

// sparkline draws values from 0 to the highest of them. Of more values than width each
// character is the mean of some.
func sparkline(values []float64, width int) string {
	heights := []rune(sparks)
	n := min(width, len(values))
	means := make([]float64, n)
	top := 0.0
	for i := range means {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		for _, v := range values[from:to] {
			means[i] += v / float64(to-from)
		}
		top = max(top, means[i])
	}
	var b strings.Builder
	for _, v := range means {
		switch {
		case v <= 0:
			b.WriteRune(dead)
		default:
			b.WriteRune(heights[min(len(heights)-1, int(v/top*float64(len(heights))))])
		}
	}
	return b.String()
}

// spark is the goodput of a trial over its measurement; "" where no seconds were kept.
func (m *model) spark(t record.Trial) string {
	if t.State != record.TrialOK {
		return ""
	}
	rows, err := m.dir.Timeline(t.ID)
	if err != nil {
		return "" // the notes of the table's latencies tell of damaged files
	}
	var values []float64
	for _, r := range rows {
		if r.T >= 0 {
			values = append(values, float64(r.OK)/cmp.Or(r.Length, 1))
		}
	}
	return sparkline(values, sparkWidth)
}
