// Package data is what is kept of runs beside the pages that they led to: a row a trial, as CSV.
package data

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Row is one trial.
type Row struct {
	// Run is the run directory's name, Version the program's, Machine where it ran.
	Run, Version, Machine string
	Started               time.Time
	Trial, Repetition     int
	// State and Verdict are the record's; Reasons are the kinds of a suspect trial's reasons.
	State, Verdict string
	Reasons        string
	// Bound is what limited its throughput.
	Bound string
	// Attempts is how often it was measured.
	Attempts   int
	Parameters map[string]string
	// Figures are by metric, in seconds, bytes, shares and numbers a second.
	Figures map[string]float64
}

// Valid says that the trial measured, and can be believed.
func (r Row) Valid() bool { return r.State == record.TrialOK && r.Verdict == record.Valid }

// Of reads a run's trials. keep names figures, a last * stands for any rest.
func Of(d *record.Dir, keep []string) []Row {
	var rows []Row
	for _, t := range d.Summary.Trials {
		r := Row{
			Run: d.Summary.Run, Version: d.Run.Versions.Skerry, Machine: machine(d.Run.Host), Started: t.Started.UTC().Truncate(time.Second),
			Trial: t.ID, Repetition: t.Repetition, State: t.State, Verdict: t.Verdict.State,
			Reasons: strings.Join(slices.Compact(slices.Sorted(slices.Values(t.Verdict.Kinds))), " "), Attempts: 1 + len(t.Replaced),
			Parameters: map[string]string{}, Figures: map[string]float64{},
		}
		if t.Bound != nil {
			r.Bound = t.Bound.By
		}
		for name, v := range t.Parameters {
			r.Parameters[name] = text(v)
		}
		for _, v := range metric.Of(t) {
			if wanted(v.Name, keep) && !v.Beyond {
				r.Figures[v.Name] = v.V
			}
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Trial, b.Trial) })
	return rows
}

func machine(m record.Machine) string {
	return fmt.Sprintf("%s, %d cores, %d GiB, Linux %s", m.CPU, m.Cores, (m.MemoryBytes+1<<29)>>30, m.Kernel)
}

// text is a parameter as a person writes it: of a mapping, its name.
func text(v any) string {
	if m, ok := v.(map[string]any); ok {
		if name, ok := m["name"].(string); ok {
			return name
		}
	}
	return fmt.Sprint(v)
}

func wanted(name string, keep []string) bool {
	return slices.ContainsFunc(keep, func(k string) bool {
		head, open := strings.CutSuffix(k, "*")
		return name == k || open && strings.HasPrefix(name, head)
	})
}

// parameter begins the columns of parameters.
const parameter = "with."

// fixed are the columns of every row.
var fixed = []string{"run", "version", "machine", "started", "trial", "repetition", "state", "verdict", "reasons", "bound", "attempts"}

// Write writes rows as CSV with a line of names, parameters and figures sorted by name.
func Write(w io.Writer, rows []Row) error {
	parameters, figures := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		for name := range r.Parameters {
			parameters[name] = true
		}
		for name := range r.Figures {
			figures[name] = true
		}
	}
	ps, fs := slices.Sorted(maps.Keys(parameters)), slices.Sorted(maps.Keys(figures))
	out := csv.NewWriter(w)
	line := slices.Clone(fixed)
	for _, p := range ps {
		line = append(line, parameter+p)
	}
	if err := out.Write(append(line, fs...)); err != nil {
		return fmt.Errorf("writing trials: %w", err)
	}
	for _, r := range rows {
		line := []string{
			r.Run, r.Version, r.Machine, r.Started.Format(time.RFC3339), strconv.Itoa(r.Trial), strconv.Itoa(r.Repetition),
			r.State, r.Verdict, r.Reasons, r.Bound, strconv.Itoa(r.Attempts),
		}
		for _, p := range ps {
			line = append(line, r.Parameters[p])
		}
		for _, f := range fs {
			s := ""
			if v, ok := r.Figures[f]; ok {
				s = strconv.FormatFloat(v, 'g', 6, 64)
			}
			line = append(line, s)
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("writing trials: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

// Read reads what Write has written.
func Read(r io.Reader) ([]Row, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("reading trials: %w", err)
	}
	if len(head) < len(fixed) || !slices.Equal(head[:len(fixed)], fixed) {
		return nil, fmt.Errorf("reading trials: the columns begin with %s, want %s", strings.Join(head, ","), strings.Join(fixed, ","))
	}
	var rows []Row
	for {
		line, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading trials: %w", err)
		}
		row, err := parse(head, line)
		if err != nil {
			return nil, fmt.Errorf("reading trial %d: %w", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
}

func parse(head, line []string) (r Row, err error) {
	number := func(s string) int {
		n, wrong := strconv.Atoi(s)
		err = errors.Join(err, wrong)
		return n
	}
	r = Row{
		Run: line[0], Version: line[1], Machine: line[2], Trial: number(line[4]), Repetition: number(line[5]), State: line[6], Verdict: line[7],
		Reasons: line[8], Bound: line[9], Attempts: number(line[10]), Parameters: map[string]string{}, Figures: map[string]float64{},
	}
	var wrong error
	r.Started, wrong = time.Parse(time.RFC3339, line[3])
	err = errors.Join(err, wrong)
	for i := len(fixed); i < len(head); i++ {
		if name, ok := strings.CutPrefix(head[i], parameter); ok {
			r.Parameters[name] = line[i]
		} else if line[i] != "" {
			v, wrong := strconv.ParseFloat(line[i], 64)
			err = errors.Join(err, wrong)
			r.Figures[head[i]] = v
		}
	}
	return r, err
}
