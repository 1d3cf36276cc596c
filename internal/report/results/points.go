package results

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
	"skerry/internal/topology"
)

// Point holds the figures of a trial in one interval of its measurement.
type Point struct {
	Trial int
	// T is the start of the interval, in seconds of the measurement.
	T float64
	// Parameters are copied from the trial's row.
	Parameters map[string]string
	// Figures are means over the interval: goodput, p95 (s), failed (per second), rtt (s, over all
	// pairs), cpu (cores of a data node), credits.
	Figures map[string]float64
}

var pointFigures = []string{"goodput", "p95", "failed", "rtt", "cpu", "credits"}

const maxPoints = 100

// TrialPoints returns the figures in keep over time, of the first valid trial of each cell.
func TrialPoints(d *record.Dir, keep []string) ([]Point, error) {
	var out []Point
	drawn := map[string]bool{}
	for _, t := range d.Summary.Trials {
		cell := fmt.Sprint(t.Parameters)
		if drawn[cell] || t.State != record.TrialOK || t.Verdict.State != record.Valid {
			continue
		}
		drawn[cell] = true
		of := &binnedFigures{width: max(1, int64(t.DurationS)/maxPoints+1), at: map[int64]map[string]*weightedSum{}}
		if err := errors.Join(of.timeline(d, t.ID), of.network(d, t.ID), of.nodes(d, t.ID)); err != nil {
			return nil, fmt.Errorf("trial %d over time: %w", t.ID, err)
		}
		for _, bin := range slices.Sorted(maps.Keys(of.at)) {
			p := Point{Trial: t.ID, T: float64(bin * of.width), Figures: map[string]float64{}}
			for name, m := range of.at[bin] {
				if slices.Contains(keep, name) {
					p.Figures[name] = m.sum / m.weight
				}
			}
			if len(p.Figures) > 0 {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

type weightedSum struct{ sum, weight float64 }

type binnedFigures struct {
	width int64
	at    map[int64]map[string]*weightedSum
}

func (s *binnedFigures) add(t int64, name string, v, weight float64) {
	if t < 0 || weight <= 0 {
		return // warm-up
	}
	bin := t / s.width
	if s.at[bin] == nil {
		s.at[bin] = map[string]*weightedSum{}
	}
	if s.at[bin][name] == nil {
		s.at[bin][name] = &weightedSum{}
	}
	m := s.at[bin][name]
	m.sum, m.weight = m.sum+v, m.weight+weight
}

func (s *binnedFigures) timeline(d *record.Dir, trial int) error {
	seconds, err := d.Timeline(trial)
	for _, r := range seconds {
		s.add(r.T, "goodput", float64(r.OK), r.Length)
		s.add(r.T, "failed", float64(r.Failed+r.Unknown), r.Length)
		if r.OK > 0 {
			s.add(r.T, "p95", r.ServiceP95/1e6, 1)
		}
	}
	return err
}

func (s *binnedFigures) network(d *record.Dir, trial int) error {
	seconds, err := d.Network(trial)
	for _, r := range seconds {
		s.add(r.T, "rtt", r.Mean/1e3, 1)
	}
	return err
}

func (s *binnedFigures) nodes(d *record.Dir, trial int) error {
	seconds, err := d.Nodes(trial)
	for _, r := range seconds {
		if strings.HasPrefix(r.Node, "@") || topology.IsClient(r.Node) {
			continue
		}
		s.add(r.T, "cpu", r.CPU, 1)
		if r.Credits != nil {
			s.add(r.T, "credits", *r.Credits, 1)
		}
	}
	return err
}

// writePoints writes points as CSV: trial, t, then figures.
func writePoints(w io.Writer, ps []Point) error {
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{"trial", "t"}, pointFigures...)); err != nil {
		return fmt.Errorf("write points: %w", err)
	}
	for _, p := range ps {
		line := []string{strconv.Itoa(p.Trial), strconv.FormatFloat(p.T, 'g', -1, 64)}
		if err := out.Write(append(line, formatFigures(p.Figures, pointFigures, 5)...)); err != nil {
			return fmt.Errorf("write points: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

func readPoints(r io.Reader, rows []Row) ([]Point, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read points: %w", err)
	}
	if len(lines) == 0 || !slices.Equal(lines[0], append([]string{"trial", "t"}, pointFigures...)) {
		return nil, fmt.Errorf("read points: want the columns trial,t,%s", strings.Join(pointFigures, ","))
	}
	var out []Point
	for n, l := range lines[1:] {
		p := Point{Figures: map[string]float64{}}
		if p.Trial, err = strconv.Atoi(l[0]); err == nil {
			p.T, err = strconv.ParseFloat(l[1], 64)
		}
		for i, name := range pointFigures {
			if l[2+i] == "" {
				continue
			}
			v, wrong := strconv.ParseFloat(l[2+i], 64)
			err = errors.Join(err, wrong)
			p.Figures[name] = v
		}
		if err != nil {
			return nil, fmt.Errorf("read points: line %d: %w", n+2, err)
		}
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Trial == p.Trial })
		if i < 0 {
			return nil, fmt.Errorf("read points: line %d: %w: %d", n+2, record.ErrNoTrial, p.Trial)
		}
		p.Parameters = rows[i].Parameters
		out = append(out, p)
	}
	return out, nil
}
