package choice

import (
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"strconv"

	"skerry/internal/record"
	"skerry/internal/report/svg"
	"skerry/internal/run/choose"
)

// nan leaves a gap in a line.
var nan = math.NaN()

// course is the goodput of a run's trial over its seconds, and what happened meanwhile.
func course(d *record.Dir, label string, i int) (line svg.Series, spans []svg.Span, err error) {
	line = svg.Series{Name: label, Class: svg.Color(i)}
	if len(d.Summary.Trials) == 0 {
		return line, nil, nil
	}
	t := d.Summary.Trials[0]
	seconds, err := d.Timeline(t.ID)
	if err != nil {
		return line, nil, fmt.Errorf("reading the timeline of %s: %w", label, err)
	}
	for _, x := range seconds {
		if x.T >= 0 && x.Length > 0 {
			line.Points = append(line.Points, svg.Point{X: float64(x.T), Y: float64(x.OK) / x.Length})
		}
	}
	for _, h := range t.Events {
		if h.RevertedS != nil {
			spans = append(spans, svg.Span{From: h.AtS, To: *h.RevertedS, Name: h.Name})
		}
	}
	return line, spans, nil
}

// shown is how many candidates are drawn on a bad day.
const shown = 3

// badDays draw the best candidates' goodput over each bad day.
func badDays(a choose.Answer, dir string) (days []dayView, err error) {
	for _, day := range a.Days[1:] {
		short := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
		plot := svg.Plot{Label: "Goodput on the day " + day + ".", X: svg.Axis{Label: "seconds of the measurement", Format: short}, Y: svg.Axis{Label: "ops/s", Format: short}}
		for _, v := range a.Candidates {
			if len(v.Runs[day]) == 0 || len(plot.Series) == shown {
				continue
			}
			d, err := record.Open(filepath.Join(dir, v.Runs[day][0]))
			if err != nil {
				return nil, fmt.Errorf("reading a bad day of %s: %w", v.Label, err)
			}
			line, happened, err := course(d, v.Label, len(plot.Series))
			if err != nil {
				return nil, err
			}
			plot.Series = append(plot.Series, line)
			if plot.Spans == nil {
				plot.Spans = happened
			}
		}
		if len(plot.Series) > 0 {
			days = append(days, dayView{day, template.HTML(plot.SVG())})
		}
	}
	return days, nil
}
