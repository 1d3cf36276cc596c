package choose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"skerry/internal/base/atomicfile"
	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

func (n Needs) experimentYAML(c Candidate, day string) ([]byte, error) {
	e := map[string]any{"name": Slug(c.ID() + "-" + day), "description": c.Label() + ": " + day, "seed": n.Seed}
	if c.own == nil {
		n.placeInCloud(e, c)
	} else {
		e["database"], e["workload"] = c.own, n.workload(n.Load.Threads, n.Load.Target)
	}
	d := n.badDay(day)
	if d == nil {
		e["stop"] = map[string]any{"time": n.measureTime(nil).String()}
	} else {
		e["events"], e["audit"] = n.dayEvents(*d), true
		stop := map[string]any{"time": n.measureTime(d).String()}
		if len(d.Events) > 0 {
			stop["after_events"] = n.Measure.String()
		}
		e["stop"] = stop
	}
	var lines []string
	for _, l := range n.measured(c, day) {
		lines = append(lines, l.Text)
	}
	if len(lines) > 0 {
		e["assert"] = lines
	}
	text, err := json.Marshal(e)
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return nil, fmt.Errorf("write experiment of %s on day %s: %w", c.Label(), day, err)
	}
	return text, nil
}

// placeInCloud adds to an experiment what a lab needs: the cloud, the nodes and settings of the database, the clients.
func (n Needs) placeInCloud(e map[string]any, c Candidate) {
	base := map[string]any{"name": c.Database}
	if len(c.Options) > 0 {
		base["options"] = c.Options
	}
	if len(c.Members) > 0 {
		base["nodes"] = c.Members
	}
	e["topology"], e["database"] = n.Cloud, base
	if len(n.Client) > 0 {
		e["client"] = n.Client[0]
	}
	if len(n.Client) > 1 {
		e["workloads"] = n.workloads()
	} else {
		e["workload"] = n.workload(n.Load.Threads, n.Load.Target)
	}
}

// measured returns the needs that are measured on a day of a candidate.
func (n Needs) measured(c Candidate, day string) []metric.Assertion {
	return slices.DeleteFunc(n.assertions(day), func(l metric.Assertion) bool { return c.unmeasured(l, day) != "" })
}

func (n Needs) badDay(label string) *BadDay {
	if i := slices.IndexFunc(n.BadDays, func(d BadDay) bool { return d.Label() == label }); i >= 0 {
		return &n.BadDays[i]
	}
	return nil
}

// assertions returns the needs that apply to a day: on the quiet day all except those of events and losses;
// on a bad day those of its events, availability and losses.
func (n Needs) assertions(day string) (assertions []metric.Assertion) {
	d := n.badDay(day)
	for _, m := range n.Must {
		l, err := metric.ParseAssertion(m.Line)
		if err != nil { // a guarantee of reads; mistakes were rejected before
			continue
		}
		name := l.Metric
		switch {
		case name.Event != "" && (d == nil || !d.hasEvent(name.Event)), name.Audit && d == nil:
			continue
		case d != nil && name.Event == "" && !name.Audit && l.Name != "availability" && l.Name != "failed" && l.Name != "unknown":
			continue
		}
		assertions = append(assertions, l)
	}
	return assertions
}

func (c *Contest) runsDir(h race.Heat) string {
	return filepath.Join(c.Dir, "runs", h.Candidate, Slug(h.Day), fmt.Sprint(h.N))
}

func (c *Contest) experimentPath(candidate, day string) string {
	return filepath.Join(c.Dir, "experiments", candidate+"-"+Slug(day)+".yaml")
}

func (c *Contest) writeExperiment(h race.Heat) (path string, text []byte, err error) {
	path = c.experimentPath(h.Candidate, h.Day)
	if text, err = c.Needs.experimentYAML(c.byID[h.Candidate], h.Day); err != nil {
		return path, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return path, nil, fmt.Errorf("create experiments folder: %w", err)
	}
	return path, text, atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// findRun returns the finished run of a heat, nil if there is none, and the directories of interrupted
// runs. Runs of another experiment, such as under another load, are ignored and kept.
func (c *Contest) findRun(h race.Heat, text []byte) (found *record.Dir, left []string, err error) {
	runs, err := os.ReadDir(c.runsDir(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find run of %s: %w", h.Candidate, err)
	}
	for _, r := range runs {
		if !r.IsDir() {
			continue
		}
		path := filepath.Join(c.runsDir(h), r.Name())
		d, err := record.Open(path)
		switch {
		case err == nil && d.Running: // another command is measuring
		case err != nil || !d.Summary.Complete || len(d.Summary.Trials) == 0:
			left = append(left, path)
		case sameMeasurement(d.Run.File.Text, text):
			found = d
		}
	}
	return found, left, nil
}

// sameMeasurement reports whether two experiments differ in assertions at most.
func sameMeasurement(a string, b []byte) bool {
	var left, right map[string]any
	if yaml.Unmarshal([]byte(a), &left) != nil || yaml.Unmarshal(b, &right) != nil {
		return false
	}
	for _, e := range []map[string]any{left, right} {
		delete(e, "assert")
	}
	x, errX := json.Marshal(left)
	y, errY := json.Marshal(right)
	return errX == nil && errY == nil && string(x) == string(y)
}
