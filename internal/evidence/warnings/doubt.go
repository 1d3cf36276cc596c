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

// Doubt is one kind of trouble, of however many trials.
type Doubt struct {
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
	{Assertion, "Assertions did not hold in %d of %s.", broken},
	{Audit, "The audit found something in %d of %s.", found},
	{Failed, "%d of %s failed and measured nothing.", failed},
	{Trust, "%d of %s measured with doubt.", suspect},
}

// Of returns the doubts about trials of a run of so many, the gravest first; none means that
// all holds.
func Of(trials []record.Trial, planned int) []Doubt {
	out := []Doubt{}
	for _, k := range kinds {
		d := Doubt{Kind: k.kind}
		first := ""
		for _, t := range trials {
			if wrong := k.wrong(t); wrong != "" {
				d.Trials = append(d.Trials, t.ID)
				first = cmp.Or(first, wrong)
			}
		}
		if len(d.Trials) > 0 {
			d.Text = fmt.Sprintf(k.lead+" Trial %d: %s.", len(d.Trials), plural(planned), d.Trials[0], strings.TrimSuffix(first, "."))
			out = append(out, d)
		}
	}
	return out
}

func plural(trials int) string {
	if trials == 1 {
		return "1 trial"
	}
	return strconv.Itoa(trials) + " trials"
}

func broken(t record.Trial) string {
	var all []string
	for _, a := range t.Assertions {
		if !a.Held {
			all = append(all, a.Text+", it is "+cmp.Or(a.Value, "not measured"))
		}
	}
	return strings.Join(all, "; ")
}

func found(t record.Trial) string {
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

func failed(t record.Trial) string {
	if t.State != record.TrialFailed {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(t.Error), "\n")
	return cmp.Or(line, "it does not say why")
}

func suspect(t record.Trial) string {
	if t.State != record.TrialOK || t.Verdict.State == record.Valid {
		return ""
	}
	return cmp.Or(strings.Join(t.Verdict.Reasons, "; "), "it does not say why")
}
