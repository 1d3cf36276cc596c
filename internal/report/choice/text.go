// Package choice presents the answer of skerry choose: as text, and as a page with a table of
// candidates by need, the trade-off between preferred metrics, and the goodput of the best
// candidates on bad days.
package choice

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"skerry/internal/evidence/race"
	"skerry/internal/report"
	"skerry/internal/run/choose"
)

// Text prints the answer for a terminal.
func Text(w io.Writer, a choose.Answer) error {
	var b strings.Builder
	fmt.Fprintln(&b, a.Sentence)
	if a.Compared != "" {
		fmt.Fprintln(&b, a.Compared)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "candidate\treads\t%s\tfirst in\tneeds\t\n", strings.Join(a.Prefer, "\t"))
	for _, v := range a.Candidates {
		fmt.Fprintf(t, "%s\t%s", v.Label, v.Guarantee())
		for _, name := range a.Prefer {
			fmt.Fprintf(t, "\t%s", formatPreferred(v, name))
		}
		fmt.Fprintf(t, "\t%s\t%s\t\n", wins(v), outcomeLabel(v))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	fmt.Fprintln(&b)
	for _, v := range a.Candidates {
		writeCandidate(&b, v, distinctNeeds(a))
	}
	if a.Sure != "" {
		fmt.Fprintf(&b, "%s\n", a.Sure)
	}
	for _, l := range a.Excluded {
		fmt.Fprintf(&b, "not tried: %s: %s\n", l.Who, l.Why)
	}
	for _, n := range a.Notes {
		fmt.Fprintln(&b, "note:", n)
	}
	for _, c := range a.Changes {
		fmt.Fprintln(&b, c)
	}
	fmt.Fprintf(&b, "%s\n", Basis(a))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCandidate(b *strings.Builder, v choose.Verdict, needs []string) {
	switch v.Out {
	case "":
		fmt.Fprintf(b, "%s: gives up: %s\n", v.Label, v.GivesUp)
	case race.Partly:
		fmt.Fprintf(b, "%s: %s\n", v.Label, v.Why)
	default:
		fmt.Fprintf(b, "%s: %s\n", v.Label, v.Why)
		return
	}
	for _, need := range needs {
		fmt.Fprintf(b, "  %s\n", assessNeed(v, need))
	}
	if len(v.Places) > 0 {
		fmt.Fprintf(b, "  each place: %s\n", formatPlaces(v))
	}
}

type assessment struct{ need, state, evidence string }

// String joins the parts that are not empty.
func (a assessment) String() string {
	parts := []string{a.need, a.state, a.evidence}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

func assessNeed(v choose.Verdict, need string) assessment {
	n, days, tried := v.WorstNeed(need)
	evidence := n.Evidence()
	if n.N > 0 && evidence != "" && days > 1 {
		evidence += ", " + n.Day
	}
	if tried < days {
		evidence = strings.TrimPrefix(evidence+fmt.Sprintf("; tried on %d of %d days", tried, days), "; ")
	}
	return assessment{need, n.State, evidence}
}

func outcomeLabel(v choose.Verdict) string {
	return map[string]string{"": "met", race.Failed: "not met", race.Worse: "worse", race.Void: "not known", race.Waiting: "not tried",
		race.Partly: "not measured in full"}[v.Out]
}

// Explain prints everything known about one candidate.
func Explain(w io.Writer, v choose.Verdict) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", v.Label, v.Version)
	for _, name := range choose.OptionNames(v.Candidate) {
		fmt.Fprintf(&b, "  %s: %v\n", name, v.Options[name])
	}
	fmt.Fprintf(&b, "reads: %s\ngives up: %s\n", v.Guarantee(), v.GivesUp)
	if v.Loses != "" {
		fmt.Fprintf(&b, "acknowledged writes that can be lost: %s\n", v.Loses)
	}
	fmt.Fprintf(&b, "result: %s\n", state(v))
	for _, f := range v.Figures {
		fmt.Fprintf(&b, "  %s: %s (%s)\n", f.Name, f, report.Plural(f.N, "trial"))
	}
	if len(v.Places) > 0 {
		fmt.Fprintf(&b, "  each place: %s\n", formatPlaces(v))
	}
	if v.Reduced != "" {
		fmt.Fprintf(&b, "measured on %s: %s\n", strings.Join(v.Members, ", "), v.Reduced)
	}
	for _, n := range v.Needs {
		fmt.Fprintf(&b, "  %s, %s: %s%s\n", n.Day, n.Text, n.State, formatEvidence(n))
	}
	for _, day := range sortedKeys(v.Files) {
		fmt.Fprintf(&b, "%s: skerry run %s; measured in %s\n", day, v.Files[day], strings.Join(v.Runs[day], ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Basis describes the trials, the time and the machine behind an answer.
func Basis(a choose.Answer) string {
	text := fmt.Sprintf("It is based on %s in %s of %s, on %d cores with %s.", report.Plural(a.Trials, "trial"), formatSeconds(a.SpentS),
		formatSeconds(a.BudgetS), a.Machine.Cores,
		formatGigabytes(a.Machine.MemoryBytes))
	if a.Exhaustive {
		text = fmt.Sprintf("It is based on all %d trials, in %s, on %d cores with %s.", a.Trials, formatSeconds(a.SpentS),
			a.Machine.Cores, formatGigabytes(a.Machine.MemoryBytes))
	}
	asked := a.Load
	if len(a.Clients) > 0 {
		asked += " from " + strings.Join(a.Clients, " and ")
	}
	text = "Asked for: " + asked + ". " + text
	if a.Void > 0 {
		text += fmt.Sprintf(" %d of them decided nothing.", a.Void)
	}
	return text
}

// formatPlaces lists the figures of each client: "singapore.p99 210 ms (207 to 213), dubai.p99 180
// ms".
func formatPlaces(v choose.Verdict) string {
	var parts []string
	for _, f := range v.Places {
		parts = append(parts, f.Name+" "+f.String())
	}
	return strings.Join(parts, ", ")
}

func formatGigabytes(n int64) string { return fmt.Sprintf("%.0f GB", float64(n)/1e9) }

func formatSeconds(s float64) string {
	return report.FormatDuration(time.Duration(s * float64(time.Second)))
}

func formatPreferred(v choose.Verdict, name string) string {
	for _, f := range v.Figures {
		if f.Name == name {
			return f.String()
		}
	}
	if v.Own != "" && len(v.Figures) > 0 {
		return choose.NotMeasured
	}
	return "-"
}

func wins(v choose.Verdict) string {
	if v.Out != "" {
		return "-"
	}
	return fmt.Sprintf("%.0f of 100", 100*v.Wins)
}

func state(v choose.Verdict) string {
	if v.Out == "" {
		return "met"
	}
	return v.Why
}

func formatEvidence(n choose.Need) string {
	if n.Evidence() == "" {
		return ""
	}
	return " (" + n.Evidence() + ")"
}
