package page

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"skerry/internal/report/results/data"
	"skerry/internal/report/svg"
)

// graphs draws who talks to whom, side by side for each value of by= where that is asked for.
func (f *filler) graphs(rows []data.Row, w words) (string, error) {
	by := w.list("by")
	all, err := cells(rows, by)
	if err != nil {
		return "", err
	}
	var names, pictures []string
	for _, c := range all {
		svg, about, err := graph(c.rows, w)
		text, err := f.add(svg, about, err)
		if errors.As(err, new(NotYet)) && len(by) > 0 {
			text, err = "–", nil
		}
		if err != nil || len(by) == 0 {
			return text, err
		}
		names, pictures = append(names, strings.Join(c.key, " ")), append(pictures, strings.TrimSpace(text))
	}
	var t lines
	t.head(names...)
	t.line(pictures...)
	return t.String(), nil
}

// graph draws who talks to whom: the bytes that pairs of data nodes exchanged for an operation, the
// mean over the trials that count and that where= keeps.
func graph(rows []data.Row, w words) (picture, about string, err error) {
	sums := map[string]float64{}
	valid := 0
	for _, r := range rows {
		if !r.Counts() {
			continue
		}
		valid++
		for name, v := range r.Figures {
			if pair, ok := strings.CutPrefix(name, data.Pair); ok {
				sums[pair] += v
			}
		}
	}
	if valid == 0 || len(sums) == 0 {
		return "", "", NotYet{w.step}
	}
	g := svg.Graph{}
	at := func(name string) int {
		return slices.IndexFunc(g.Nodes, func(n svg.Node) bool { return n.Name == name })
	}
	for pair := range sums {
		for _, name := range strings.Split(pair, "~") {
			if at(name) < 0 {
				g.Nodes = append(g.Nodes, svg.Node{Name: name})
			}
		}
	}
	slices.SortFunc(g.Nodes, func(a, b svg.Node) int { return strings.Compare(a.Name, b.Name) })
	least, most := math.Inf(1), 0.0
	for pair, sum := range sums {
		a, b, _ := strings.Cut(pair, "~")
		v := sum / float64(valid)
		least, most = min(least, v), max(most, v)
		g.Edges = append(g.Edges, svg.Edge{A: at(a), B: at(b), Weight: v, Tip: fmt.Sprintf("%s: %.0f B an operation", pair, v)})
	}
	slices.SortFunc(g.Edges, func(a, b svg.Edge) int { return strings.Compare(a.Tip, b.Tip) })
	about = fmt.Sprintf("who talks to whom: %.0f to %.0f B an operation between two data nodes", least, most)
	g.Label = about
	return alone(g.SVG()), about, nil
}
