// Package warnings is what a reader must know of trials before any figure of theirs: what did not
// hold, what was lost, what failed and what was measured with doubt.
package warnings

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// Warning is one kind of trouble, of however many trials.
type Warning struct {
	Kind Kind `json:"kind"`
	// Trials are the IDs of those that it is about.
	Trials []int  `json:"trials"`
	Text   string `json:"text"`
}

// Kind is what is wrong, the gravest first.
type Kind string

// The kinds of doubt, in the order in which they are told.
const (
	Assertion Kind = "assertion" // one did not hold
	Audit     Kind = "audit"     // it found something
	Failed    Kind = "failed"    // nothing was measured
	Trust     Kind = "trust"     // measured, and suspect
)

// kinds say of each kind how a sentence begins and what is wrong with a trial, "" for nothing.
var kinds = []struct {
	kind  Kind
	lead  string
	wrong func(record.Trial) string
}{
	{Assertion, "Assertions did not hold in %d of %s.", describeAssertions},
	{Audit, "The audit found something in %d of %s.", describeAudit},
	{Failed, "%d of %s failed and measured nothing.", describeFailure},
	{Trust, "%d of %s measured with doubt.", describeVerdict},
}

// Collect returns the doubts about trials of a run of so many, the gravest first; none means that
// all holds.
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
			all = append(all, a.Text+", it is "+cmp.Or(a.Value, "not measured"))
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
	}{{t.Audit.Lost, "acknowledged writes were lost"}, {t.Audit.Stale, "copies were stale"}, {t.Audit.Unexpected, "values were unexpected"}, {t.Audit.Unread, "records could not be read back"}} {
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
	return cmp.Or(line, "it does not say why")
}

func describeVerdict(t record.Trial) string {
	if t.State != record.TrialOK || t.Verdict.State == record.Valid {
		return ""
	}
	return cmp.Or(strings.Join(t.Verdict.Reasons, "; "), "it does not say why")
}
