package results

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

	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// Row is one trial.
type Row struct {
	// Run is the name of the run directory, Version the version of Skerry, Machine the host.
	Run, Version, Machine string
	Started               time.Time
	Trial, Repetition     int
	// State and Verdict are the record's. Reasons are the kinds of reasons of a suspect trial.
	State, Verdict string
	Reasons        string
	// Bound is the bottleneck of the throughput.
	Bound string
	// Attempts counts measurements of the trial.
	Attempts   int
	Parameters map[string]string
	// Figures are by metric, in seconds, bytes, shares and numbers per second.
	Figures map[string]float64
}

func (r Row) Valid() bool { return r.State == record.TrialOK && r.Verdict == record.Valid }

// Counts reports whether the figures of the trial are used. Lost writes and wrong values make a
// trial suspect, but they are properties of the database, not of the emulation, so such a trial
// counts.
func (r Row) Counts() bool {
	return r.Valid() || r.State == record.TrialOK && r.Reasons == string(verdict.Audit)
}

// HasFaults reports whether the audit found lost writes or wrong values.
func (r Row) HasFaults() bool {
	return slices.Contains(strings.Fields(r.Reasons), string(verdict.Audit))
}

// TrialRows returns the trials of a run with the figures that keep names. A trailing * matches any
// suffix.
func TrialRows(d *record.Dir, keep []string) (rows []Row, err error) {
	for _, t := range d.Summary.Trials {
		if t.State == record.TrialInterrupted {
			continue // resuming the run repeats it
		}
		r := Row{
			Run: d.Summary.Run, Version: d.Run.Versions.Skerry, Machine: describeMachine(d.Run.Host), Started: t.Started.UTC().Truncate(time.Second),
			Trial: t.ID, Repetition: t.Repetition, State: t.State, Verdict: t.Verdict.State,
			Reasons: strings.Join(slices.Compact(slices.Sorted(slices.Values(t.Verdict.Kinds))), " "), Attempts: 1 + len(t.Replaced),
			Parameters: map[string]string{}, Figures: map[string]float64{},
		}
		if t.Bound != nil {
			r.Bound = t.Bound.By
		}
		for name, v := range t.Parameters {
			r.Parameters[name] = formatParameter(v)
		}
		r.addMetrics(metric.Values(t), keep)
		r.addEventCounts(t.Events, keep)
		r.addOccurrences(t.Events, keep)
		if slices.Contains(keep, changePrefix+"*") {
			if err := r.addMembershipChanges(d); err != nil {
				return nil, err
			}
		}
		if slices.Contains(keep, pairPrefix+"*") {
			r.addPairTraffic(t)
		}
		r.addProbes(t.ProbeStats(), keep)
		r.addLoad(t.Load, keep)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Trial, b.Trial) })
	return rows, nil
}

// pairPrefix begins the traffic of two data nodes: "pair.A~B" is in bytes per operation.
const pairPrefix = "pair."

func (r Row) addPairTraffic(t record.Trial) {
	if t.Outcomes.OK == 0 || t.Traffic == nil {
		return
	}
	for _, p := range t.Traffic.Pairs {
		if topology.IsClient(p.From) || topology.IsClient(p.To) {
			continue
		}
		r.Figures[pairPrefix+min(p.From, p.To)+"~"+max(p.From, p.To)] += float64(p.Bytes) / float64(t.Outcomes.OK)
	}
}

func (r Row) addProbes(all []record.ProbeStats, keep []string) {
	for _, p := range all {
		name := "probes." + strings.ReplaceAll(strings.ToLower(p.Operation), "-", "_")
		figures := map[string]float64{".highest": p.HighestUS / 1e6, ".before": p.BeforeUS / 1e6, ".during": p.DuringUS / 1e6}
		if p.BeforeUS > 0 {
			figures[".growth"] = p.DuringUS / p.BeforeUS
		}
		for of, v := range figures {
			if v > 0 && isWanted(name+of, keep) {
				r.Figures[name+of] = v
			}
		}
	}
}

// addLoad adds "load.rate" in records per second, and the latencies of inserts while the table was
// loaded.
func (r Row) addLoad(l *record.Load, keep []string) {
	if l == nil {
		return
	}
	insert := l.Insert.Latency()
	for name, v := range map[string]float64{"load.rate": l.Rate, "load.mean": insert.Mean / 1e6, "load.p95": insert.P95 / 1e6} {
		if isWanted(name, keep) {
			r.Figures[name] = v
		}
	}
}

func describeMachine(m record.Machine) string {
	return fmt.Sprintf("%s, %d cores, %d GiB, Linux %s", m.CPU, m.Cores, (m.MemoryBytes+1<<29)>>30, m.Kernel)
}

// formatParameter writes a parameter without spaces: of a mapping its name or kind with its options
// (cassandra/read_consistency:one), of a list its elements (hog+flood).
func formatParameter(v any) string {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return "none"
		}
		var all []string
		for _, element := range v {
			all = append(all, formatParameter(element))
		}
		return strings.Join(all, "+")
	case map[string]any:
		for _, key := range []string{"name", "kind", "from"} {
			head, ok := v[key].(string)
			if !ok {
				continue
			}
			apart := v
			if key == "name" { // other keys of a named value do not distinguish it
				apart, _ = v["options"].(map[string]any)
			}
			for _, k := range slices.Sorted(maps.Keys(apart)) {
				if k != key {
					head += "/" + k + ":" + formatParameter(apart[k])
				}
			}
			return head
		}
	}
	return fmt.Sprint(v)
}

func isWanted(name string, keep []string) bool {
	return slices.ContainsFunc(keep, func(k string) bool {
		head, open := strings.CutSuffix(k, "*")
		return name == k || open && strings.HasPrefix(name, head)
	})
}

const parameterPrefix = "with."

var fixedColumns = []string{"run", "version", "machine", "started", "trial", "repetition", "state", "verdict", "reasons", "bound",
	"attempts"}

func writeRows(w io.Writer, rows []Row) error {
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
	line := slices.Clone(fixedColumns)
	for _, p := range ps {
		line = append(line, parameterPrefix+p)
	}
	if err := out.Write(append(line, fs...)); err != nil {
		return fmt.Errorf("write trials: %w", err)
	}
	for _, r := range rows {
		line := []string{
			r.Run, r.Version, r.Machine, r.Started.Format(time.RFC3339), strconv.Itoa(r.Trial), strconv.Itoa(r.Repetition),
			r.State, r.Verdict, r.Reasons, r.Bound, strconv.Itoa(r.Attempts),
		}
		for _, p := range ps {
			line = append(line, r.Parameters[p])
		}
		if err := out.Write(append(line, formatFigures(r.Figures, fs, 6)...)); err != nil {
			return fmt.Errorf("write trials: %w", err)
		}
	}
	out.Flush()
	return out.Error()
}

func formatFigures(figures map[string]float64, names []string, digits int) []string {
	out := make([]string, len(names))
	for i, n := range names {
		if v, ok := figures[n]; ok {
			out[i] = strconv.FormatFloat(v, 'g', digits, 64)
		}
	}
	return out
}

func readRows(r io.Reader) ([]Row, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("read trials: %w", err)
	}
	if len(head) < len(fixedColumns) || !slices.Equal(head[:len(fixedColumns)], fixedColumns) {
		return nil, fmt.Errorf("read trials: columns begin with %s, want %s", strings.Join(head, ","), strings.Join(fixedColumns, ","))
	}
	var rows []Row
	for {
		line, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read trials: %w", err)
		}
		row, err := parseRow(head, line)
		if err != nil {
			return nil, fmt.Errorf("read trial %d: %w", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
}

func parseRow(head, line []string) (r Row, err error) {
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
	for i := len(fixedColumns); i < len(head); i++ {
		if name, ok := strings.CutPrefix(head[i], parameterPrefix); ok {
			r.Parameters[name] = line[i]
		} else if line[i] != "" {
			v, wrong := strconv.ParseFloat(line[i], 64)
			err = errors.Join(err, wrong)
			r.Figures[head[i]] = v
		}
	}
	return r, err
}

const (
	// ChangePrefix begins a node's membership changes: "change.Pune.leave.complete".
	changePrefix = "change."
	// MostSuffix ends the maximum over repeated events.
	mostSuffix = ".most"
	// TimesSuffix ends the number of repeated events.
	timesSuffix = ".times"
	// TurnPrefix requests each occurrence of an event separately: "turn.cut" adds cut.01.share and
	// cut.01.unresponsive.
	turnPrefix = "turn."

	eventPrefix = "events."
)

// addMetrics adds a trial's metrics. Repeated events are averaged over those that have the metric.
func (r Row) addMetrics(values []metric.Value, keep []string) {
	n := map[string]float64{}
	for _, v := range values {
		if !isWanted(v.Name, keep) || v.LowerBound {
			continue
		}
		n[v.Name]++
		r.Figures[v.Name] += (v.V - r.Figures[v.Name]) / n[v.Name]
		if strings.HasPrefix(v.Name, eventPrefix) && isWanted(v.Name+mostSuffix, keep) {
			r.Figures[v.Name+mostSuffix] = max(r.Figures[v.Name+mostSuffix], v.V)
		}
	}
}

// addEventCounts counts events by name and kind, those followed by an unresponsive period, and
// those on links in use.
func (r Row) addEventCounts(all []record.EventImpact, keep []string) {
	for _, h := range all {
		names := []string{h.Name}
		if h.Kind != h.Name {
			names = append(names, h.Kind)
		}
		for _, name := range names {
			if name := eventPrefix + name + timesSuffix; isWanted(name, keep) {
				r.Figures[name]++
			}
			stalled := min(1, float64(h.Recovery.UnresponsivePeriods))
			if name := eventPrefix + name + ".stalled"; isWanted(name, keep) {
				r.Figures[name] += stalled
			}
			if used := eventPrefix + name + ".used"; h.Carried != nil && isWanted(used, keep) {
				r.addUsedLinks(used, stalled, h)
			}
		}
	}
}

func (r Row) addUsedLinks(name string, stalled float64, h record.EventImpact) {
	count, without := r.Figures[name], r.Figures[name+"_unresponsive"]
	if h.Carried.InUse() {
		count++
		without += (h.Recovery.UnresponsiveS - without) / count
	} else {
		stalled = 0
	}
	r.Figures[name] = count
	r.Figures[name+"_stalled"] += stalled
	r.Figures[name+"_unresponsive"] = without
}

func (r Row) addOccurrences(all []record.EventImpact, keep []string) {
	count := map[string]int{}
	for _, h := range all {
		if !slices.Contains(keep, turnPrefix+h.Name) {
			continue
		}
		count[h.Name]++
		of := fmt.Sprintf("%s.%02d.", h.Name, count[h.Name])
		r.Figures[of+"at"] = h.AtS
		r.Figures[of+"unresponsive"] = h.Recovery.UnresponsiveS
		r.Figures[of+"longest_unresponsive"] = h.Recovery.LongestUnresponsiveS
		if h.Carried != nil {
			r.Figures[of+"carried"], r.Figures[of+"share"] = h.Carried.Rate, h.Carried.Share
		}
	}
}

func (r Row) addMembershipChanges(d *record.Dir) error {
	happened, err := d.Events(r.Trial)
	if err != nil {
		return fmt.Errorf("trial %d: %w", r.Trial, err)
	}
	for _, e := range record.PerMember(happened) {
		if e.Effect == nil || e.Effect.Member == "" {
			continue
		}
		node := changePrefix + strings.Join(e.Targets, "+") + "."
		r.addStep(node+string(e.Effect.Member), e.Apply)
		r.addStep(node+string(e.Effect.Member.Opposite()), e.Revert)
	}
	return nil
}

func (r Row) addStep(name string, s *record.Step) {
	if s == nil || s.Began == nil {
		return
	}
	if s.Accepted != nil {
		r.Figures[name+".accepted"] = s.Accepted.Seconds() - s.Began.Seconds()
	}
	if s.Completed != nil {
		r.Figures[name+".complete"] = s.Completed.Seconds() - s.Began.Seconds()
	}
}
