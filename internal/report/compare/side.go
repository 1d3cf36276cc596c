package compare

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
	"skerry/internal/report"
)

// ErrCells means that the arguments do not name cells that can be compared.
var ErrCells = errors.New("cannot select cells to compare")

// Side is one cell of a run.
type Side struct {
	Run        string         `json:"run"`  // the directory's name
	Cell       int            `json:"cell"` // from 1, as in the run's plan
	Parameters map[string]any `json:"parameters"`
	// Trials are the IDs of the repetitions behind the figures.
	Trials []int `json:"trials"`
	// Suspect is set if no repetition was valid and the suspect ones are used.
	Suspect bool `json:"suspect,omitempty"`

	dir    *record.Dir
	trials []record.Trial
}

func openSides(arg string) ([]Side, error) {
	path, which := arg, ""
	d, err := record.Open(arg)
	if i := strings.LastIndexByte(arg, ':'); err != nil && i > 0 {
		path, which = arg[:i], arg[i+1:]
		d, err = record.Open(path)
	}
	if err != nil {
		return nil, err
	}
	sides := runCells(d)
	if which != "" {
		sides, err = selectSides(sides, which)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	sides = slices.DeleteFunc(sides, func(s Side) bool { return len(s.trials) == 0 })
	if len(sides) == 0 {
		return nil, fmt.Errorf("%s: %w: no trial succeeded", arg, ErrCells)
	}
	return sides, nil
}

func runCells(d *record.Dir) []Side {
	byCell := map[int]*Side{}
	of := map[int]int{}
	for _, p := range d.Run.Plan {
		of[p.ID] = p.Cell
		if byCell[p.Cell] == nil {
			byCell[p.Cell] = &Side{Run: filepath.Base(d.Path), Cell: p.Cell, Parameters: p.Parameters, dir: d}
		}
	}
	ended := map[int][]record.Trial{}
	for _, t := range d.Summary.Trials {
		ended[of[t.ID]] = append(ended[of[t.ID]], t)
	}
	var out []Side
	for _, c := range slices.Sorted(maps.Keys(byCell)) {
		s := *byCell[c]
		s.trials, s.Suspect = report.UsableTrials(ended[c])
		for _, t := range s.trials {
			s.Trials = append(s.Trials, t.ID)
		}
		out = append(out, s)
	}
	return out
}

// selectSides returns the cells that "2" or "scale=1,workload=a" names.
func selectSides(sides []Side, which string) ([]Side, error) {
	if n, err := strconv.Atoi(which); err == nil {
		for _, s := range sides {
			if s.Cell == n {
				return []Side{s}, nil
			}
		}
		return nil, fmt.Errorf("%w: no cell %d among %d cells", ErrCells, n, len(sides))
	}
	kept := slices.Clone(sides)
	for part := range strings.SplitSeq(which, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q is neither a cell number nor NAME=VALUE", ErrCells, part)
		}
		kept = slices.DeleteFunc(kept, func(s Side) bool {
			v, has := findParameter(s.Parameters, strings.TrimSpace(name))
			return !has || !strings.EqualFold(v, strings.TrimSpace(value))
		})
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: no cell has %s; cells are %s", ErrCells, which, listSides(sides))
	}
	return kept, nil
}

func findParameter(p map[string]any, name string) (string, bool) {
	if v, ok := p[name]; ok {
		return fmt.Sprint(v), true
	}
	for k, v := range p {
		if k[strings.LastIndexByte(k, '.')+1:] == name {
			return fmt.Sprint(v), true
		}
	}
	return "", false
}

func listSides(sides []Side) string {
	var all []string
	for _, s := range sides {
		all = append(all, fmt.Sprintf("%d (%s)", s.Cell, describeParameters(s.Parameters)))
	}
	return strings.Join(all, "; ")
}

// describeParameters writes parameters: "database redis, scale 0.2, workload a".
func describeParameters(p map[string]any) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, fmt.Sprintf("%s %v", k, p[k]))
	}
	return strings.Join(parts, ", ")
}
