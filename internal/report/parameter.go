package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
)

const (
	paramDatabase = "database"
	paramWorkload = "workload"
	paramScale    = "scale"
)

// splitParameters returns the parameters that differ between trials and those that do not. The
// database comes first, then the workload, others by name, and the scale last.
func splitParameters(trials []map[string]any) (vary, fixed []string) {
	values := map[string]map[string]bool{}
	for _, p := range trials {
		for name := range p {
			values[name] = map[string]bool{}
		}
	}
	for _, p := range trials {
		for name, seen := range values {
			seen[formatValue(name, p[name])] = true
		}
	}
	rank := map[string]int{paramDatabase: -2, paramWorkload: -1, paramScale: 1}
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b))
	})
	for _, n := range names {
		if len(values[n]) > 1 {
			vary = append(vary, n)
		} else {
			fixed = append(fixed, n)
		}
	}
	return vary, fixed
}

// formatValue writes a parameter value. The names of YCSB workloads are capitals.
func formatValue(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return noFigure
	case string:
		if name == paramWorkload && len(v) == 1 {
			return strings.ToUpper(v)
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func compareValues(name string, a, b any) int {
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(formatValue(name, a), formatValue(name, b))
}

func sortValues(name string, values []any) {
	slices.SortStableFunc(values, func(a, b any) int { return compareValues(name, a, b) })
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

func compareParameters(names []string, a, b map[string]any) int {
	for _, n := range names {
		if c := compareValues(n, a[n], b[n]); c != 0 {
			return c
		}
	}
	return 0
}

// shortName returns the last element of a path: "threads" for "workload.threads".
func shortName(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

func describeParameters(names []string, p map[string]any) string {
	var parts []string
	for _, n := range names {
		text := formatValue(n, p[n])
		switch n {
		case paramDatabase:
			parts = append(parts, text)
		default:
			parts = append(parts, shortName(n)+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}

type scales struct {
	values []float64 // ascending
	// isPaper is set if the run repeats an experiment of the FHC paper with scales among 0.2, 0.4
	// ... 1, which the paper calls X, 2X ... 5X.
	isPaper bool
}

const paperRunPrefix = "fhc-"

func newScales(run string, plan []map[string]any) scales {
	s := scales{isPaper: strings.HasPrefix(run, paperRunPrefix)}
	for _, p := range plan {
		if v, ok := toFloat(p[paramScale]); ok && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
			k := v * 5
			s.isPaper = s.isPaper && k >= 0.999 && k <= 5.001 && math.Abs(k-math.Round(k)) < 1e-6
		}
	}
	slices.Sort(s.values)
	return s
}

func (s scales) vary() bool { return len(s.values) > 1 }

func (s scales) largest() float64 {
	if len(s.values) == 0 {
		return 0
	}
	return s.values[len(s.values)-1]
}

// label writes a scale for a table, with the paper's name if it has one: "0.2 (X)".
func (s scales) label(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64) + s.paperName(v)
}

func (s scales) phrase(v float64) string {
	return strconv.FormatFloat(v, 'g', -1, 64) + " × the distances" + s.paperName(v)
}

func (s scales) paperName(v float64) string {
	k := int(math.Round(v * 5))
	switch {
	case !s.isPaper:
		return ""
	case k > 1:
		return " (" + strconv.Itoa(k) + "X)"
	}
	return " (X)"
}

func (s scales) note() string {
	switch {
	case !s.vary():
		return ""
	case s.isPaper:
		return "The scale multiplies every latency of the topology; the paper calls scale 0.2 X and scale 1 5X"
	}
	return "The scale multiplies every latency of the topology"
}

func trialParameters(d *record.Dir) []map[string]any {
	var all []map[string]any
	for _, p := range d.Run.Plan {
		all = append(all, p.Parameters)
	}
	for _, t := range d.Summary.Trials {
		all = append(all, t.Parameters)
	}
	return all
}
