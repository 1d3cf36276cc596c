package choice

import (
	"fmt"
	"math"

	"skerry/internal/record"
	"skerry/internal/report/svg"
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
