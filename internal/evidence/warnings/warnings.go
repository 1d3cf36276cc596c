// Package warnings lists what a reader must know before the figures of a run: failed assertions, audit findings, failed
// and suspect trials.
package warnings

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// Warning is one kind of problem with some trials.
type Warning struct {
	Kind Kind `json:"kind"`
	// Trials are the IDs of the affected trials.
	Trials []int  `json:"trials"`
	Text   string `json:"text"`
}

// Kind is the kind of a problem.
type Kind string

// Kinds, most severe first.
const (
	Assertion Kind = "assertion" // a condition failed
	Audit     Kind = "audit"     // lost writes or stale copies
	Failed    Kind = "failed"    // nothing was measured
	Trust     Kind = "trust"     // measured, and suspect
)

// kinds define the order, the text, and the test of each kind; "" from wrong means no problem.
var kinds = []struct {
	kind  Kind
	lead  string
	wrong func(record.Trial) string
}{
	{Assertion, "Assertions failed in %d of %s.", describeAssertions},
	{Audit, "The audit reported problems in %d of %s.", describeAudit},
	{Failed, "%d of %s failed without a measurement.", describeFailure},
	{Trust, "%d of %s are suspect.", describeVerdict},
}

// Collect returns the warnings about trials of a run with planned trials, most severe first.
func Collect(trials []record.Trial, planned int) []Warning {
	out := []Warning{}
	for _, k := range kinds {
		d := Warning{Kind: k.kind}
		first := ""
		for _, t := range trials {
			if wrong := k.wrong(t); wrong != "" {
				d.Trials = append(d.Trials, t.ID)
				first = cmp.Or(first, wrong)
			}
		}
		if len(d.Trials) > 0 {
			d.Text = fmt.Sprintf(k.lead+" Trial %d: %s.", len(d.Trials), countTrials(planned), d.Trials[0], strings.TrimSuffix(first, "."))
			out = append(out, d)
		}
	}
	return out
}

func countTrials(trials int) string {
	if trials == 1 {
		return "1 trial"
	}
	return strconv.Itoa(trials) + " trials"
}

func describeAssertions(t record.Trial) string {
	var all []string
	for _, a := range t.Assertions {
		if !a.Held {
			all = append(all, a.Text+", measured "+cmp.Or(a.Value, "nothing"))
		}
	}
	return strings.Join(all, "; ")
}

func describeAudit(t record.Trial) string {
	if t.Audit == nil {
		return ""
	}
	var all []string
	for _, f := range []struct {
		n    int64
		what string
	}{{t.Audit.Lost, "acknowledged writes were lost"}, {t.Audit.Stale, "copies were stale"}, {t.Audit.Unexpected,
		"values were unexpected"}, {t.Audit.Unread, "records could not be read back"}} {
		if f.n > 0 {
			all = append(all, strconv.FormatInt(f.n, 10)+" "+f.what)
		}
	}
	if t.Audit.History != nil && t.Audit.History.Result == record.Violated {
		all = append(all, "the history is not linearizable")
	}
	return strings.Join(all, "; ")
}

func describeFailure(t record.Trial) string {
	if t.State != record.TrialFailed {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(t.Error), "\n")
	return cmp.Or(line, "reason unknown")
}

func describeVerdict(t record.Trial) string {
	if t.State != record.TrialOK || t.Verdict.State == record.Valid {
		return ""
	}
	return cmp.Or(strings.Join(t.Verdict.Reasons, "; "), "reason unknown")
}
