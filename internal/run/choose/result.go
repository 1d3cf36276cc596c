package choose

import (
	"fmt"
	"math"
	"strings"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/race"
	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
	"skerry/internal/record/metric"
)

// Smallest values with a logarithm: a millisecond of outage, a millionth of the requests.
const (
	leastTime  = 1e-3
	leastShare = 1e-6
)

// busyShare is the CPU share of this machine above which a suspect trial would be suspect again with as
// many nodes.
const busyShare = 0.8

func (c *Contest) raceResult(h race.Heat, d *record.Dir) race.Result {
	r := race.Result{Heat: h, Margins: map[string]float64{}, Cost: c.addPeriod(d)}
	t, ok := firstTrial(d)
	if !ok {
		r.Void = "the trial did not end"
		return r
	}
	switch {
	case t.State != record.TrialOK:
		r.Void = "the trial failed: " + t.Error
		return r
	case t.Bound != nil && (t.Bound.By == bottleneck.Machine || t.Bound.By == bottleneck.Client):
		r.Void = "this machine was the bottleneck: " + t.Bound.Text
		if h.Day == race.Quiet && t.Bound.By == bottleneck.Machine {
			c.reduceMembers(h.Candidate, "this machine's CPUs were the bottleneck: "+t.Bound.Text)
		}
		return r
	case t.Verdict.State == record.Suspect && len(t.Verdict.Reasons) > 0 && !onlyDatabaseReasons(t):
		r.Void = "the trial is suspect: " + t.Verdict.Reasons[0]
		if h.Day == race.Quiet && t.Bound != nil && t.Bound.MachineShare >= busyShare {
			c.reduceMembers(h.Candidate, fmt.Sprintf("this machine's CPUs were %.0f %% busy: %s", 100*t.Bound.MachineShare,
				t.Verdict.Reasons[0]))
		}
		return r
	}
	if why := c.undecidedNeed(t, h); why != "" {
		r.Void = why
		if h.Day == race.Quiet && t.Bound != nil && t.Bound.MachineShare >= busyShare {
			c.reduceMembers(h.Candidate, why)
		}
		return r
	}
	if h.Day == race.Quiet {
		if r.Score = scoreTrial(t, c.Needs.Prefer[0]); r.Score <= 0 {
			r.Void = "the trial has no figure for " + c.Needs.Prefer[0]
			return r
		}
	}
	for _, l := range c.Needs.measured(c.byID[h.Candidate], h.Day) {
		r.Margins[l.Text] = needMargin(l, t)
	}
	return r
}

// undecidedNeed returns why a response time decides nothing: it fails a need because of this machine's CPUs
// or disk. "" if there is no such need.
func (c *Contest) undecidedNeed(t record.Trial, h race.Heat) string {
	if t.LatencyBound == nil {
		return ""
	}
	for _, l := range c.Needs.measured(c.byID[h.Candidate], h.Day) {
		if l.Metric.Unit != metric.Time || l.Metric.Event != "" || !l.Below() {
			continue
		}
		cause, what := t.LatencyBound.P99, "99th percentile"
		if name := l.Name[strings.LastIndexByte(l.Name, '.')+1:]; name == "mean" || name == "p50" {
			cause, what = t.LatencyBound.P50, "median"
		}
		if a := l.Check(t); cause.OfMachine && !a.Held && a.Measured != nil {
			return fmt.Sprintf("%s is not decided (measured %s): this machine's %s determined the %s, %s", a.Text, a.Value,
				machineResource[cause.By], what, cause.Text)
		}
	}
	return ""
}

var machineResource = map[string]string{bottleneck.Machine: "CPUs", bottleneck.Client: "CPUs", bottleneck.Disk: "disk"}

// onlyDatabaseReasons reports whether a trial is suspect only because of the database: lost writes, or
// requests that never ended. These are results.
func onlyDatabaseReasons(t record.Trial) bool {
	for _, k := range t.Verdict.Kinds {
		if k != string(verdict.Audit) && k != string(verdict.Stuck) {
			return false
		}
	}
	return len(t.Verdict.Kinds) > 0
}

func firstTrial(d *record.Dir) (record.Trial, bool) {
	if d == nil || len(d.Summary.Trials) == 0 {
		return record.Trial{}, false
	}
	return d.Summary.Trials[0], true
}

// trialFigure returns a metric of a trial, the worst of several events with one name.
func trialFigure(t record.Trial, name string) (worst metric.Value, found bool) {
	for _, v := range metric.Values(t) {
		if v.Name == name && (!found || v.V > worst.V) {
			worst, found = v, true
		}
	}
	return worst, found
}

// scoreTrial returns the score of a trial by a metric: lower is better; 0 if the trial lacks it.
func scoreTrial(t record.Trial, name string) float64 {
	v, ok := trialFigure(t, name)
	if !ok {
		return 0
	}
	switch v.Unit {
	case metric.Rate:
		return 1 / math.Max(v.V, leastShare)
	case metric.Share:
		return math.Max(1-v.V, leastShare)
	}
	return math.Max(v.V, leastShare)
}

// needMargin returns by how much a need is met, as defined by race.Result.
func needMargin(l metric.Assertion, t record.Trial) float64 {
	a := l.Check(t)
	sign := math.Inf(-1)
	if a.Held {
		sign = math.Inf(1)
	}
	if a.Measured == nil || a.AtLeast || l.Equality() {
		return sign
	}
	value, limit := *a.Measured, l.Value()
	switch l.Metric.Unit {
	case metric.Share: // compare failures: 99 % has ten times as many as 99.9 %
		value, limit = math.Max(1-limit, leastShare), math.Max(1-value, leastShare)
	case metric.Time:
		value, limit = math.Max(value, leastTime), math.Max(limit, leastTime)
	default:
		value, limit = math.Max(value, leastShare), math.Max(limit, leastShare)
	}
	if l.Below() {
		return math.Log(limit / value)
	}
	return math.Log(value / limit)
}

func (c *Contest) progressLine(r race.Result) string {
	text := r.Void
	if t, ok := firstTrial(c.runs[r.Heat]); text == "" && ok {
		text = c.formatFigures(t)
		for _, l := range c.Needs.measured(c.byID[r.Candidate], r.Day) {
			if a := l.Check(t); !a.Held {
				text += fmt.Sprintf("; not met: %s (measured %s)", a.Text, formatMeasured(l, a))
			}
		}
	}
	return fmt.Sprintf("%s  %s, %s  %s", formatSpent(c.race.Spent(), c.Needs.Budget.Duration().Seconds()),
		c.byID[r.Candidate].Label(), r.Day, text)
}

func (c *Contest) formatFigures(t record.Trial) (text string) {
	for _, name := range c.Needs.Prefer {
		if v, ok := trialFigure(t, name); ok {
			if text != "" {
				text += ", "
			}
			text += name + " " + v.Unit.Format(roundSingle(v.Unit, v.V))
		}
	}
	return text
}
