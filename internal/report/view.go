package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/experiment"
	"skerry/internal/record"
)

// view is what the page shows: texts ready to print, charts ready to place.
type view struct {
	Title, Subtitle string
	When, Where     string
	State           string
	StateClass      string // good, bad, or busy while it runs
	Empty           bool   // no trial has ended
	Measured        bool   // some trial has figures
	Unfinished      string // a sentence when not every trial has ended
	Cards           []card
	Findings        []string
	Scale           string
	Relative        string // the head of the column of multiples
	Names           []string
	Rows            []pageRow
	Operations      []operationRow
	Trials          []trialView
	Errors          []errorRow
	Happenings      []happeningRow
	Resizings       []resizeRow
	Audits          []auditRow
	Assertions      []assertionRow
	Throughput      []figureView
	ThroughputNorm  []figureView
	Transfer        []figureView
	TransferNorm    []figureView
	TransferWhat    string
	Traffic         []trafficRow
	Percentiles     []figureView
	Distributions   []figureView
	OtherOperations []figureView
	Evidence        []evidenceRow
	BadTrials       int
	Replaced        int // trials that were run again
	Disturbed       int // trials that stolen processors changed nothing of
	Links           []linkTable
	Laws            []lawRow
	Packets         string // about all packets that were observed
	Environment     []fact
	Warnings        []string
	Notes           []string
	Command         string
	Seed            string
	File            record.File
	FileName        string
	Again           string // the command that runs it again
	Plan            string
	Top             string // the largest scale
	Small           bool   // few enough trials to show each timeline at once
}

// card is one figure of the headline.
type card struct{ Figure, What, Class string }

// fact is a line of the environment.
type fact struct{ Name, Value string }

// pageRow is a cell of the matrix on the page.
type pageRow struct {
	resultRow
	Bar   template.CSS // how long the bar behind the goodput is
	Bad   bool
	First bool // of its group
}

type operationRow struct {
	Parameters                           []string
	Operation, Count, Failed             string
	Mean, P50, P95, P99, P999, Max, From string
}

type errorRow struct{ Operation, Class, Node, Count, Example string }

// trialView is one trial with its timeline.
type trialView struct {
	ID, Name, Goodput, Verdict string
	Facts                      string
	Bad, Open                  bool
	Error                      string
	Chart                      template.HTML
}

func newView(m *model) view {
	r := m.dir.Run
	v := view{
		Title: r.Name, Subtitle: r.Description, When: r.Started.Format("2 January 2006, 15:04 MST"), Where: r.Host.Name,
		State: m.state(), Empty: len(m.dir.Summary.Trials) == 0, Scale: m.scales.note(), Top: m.scales.told(m.scales.largest()),
		Seed: strconv.FormatUint(r.Seed, 10), Command: shellLine(r.Command), File: r.File, FileName: fileName(r.File.Path),
	}
	if len(m.fixed) > 0 && !v.Empty {
		v.Subtitle = strings.TrimSpace(sentence(v.Subtitle) + " All trials: " + say(m.fixed, m.dir.Summary.Trials[0].Parameters) + ".")
	}
	v.state(m)
	if !v.Empty {
		v.cards(m)
		v.results(m)
		v.charts(m)
		v.trials(m)
	}
	v.environment(m)
	v.Again = again(r.File)
	v.Notes = m.notes
	return v
}

// again is the command that runs an experiment file as it was run.
func again(f record.File) string {
	line := []string{"skerry", "run", fileName(f.Path)}
	for _, s := range f.Set {
		line = append(line, "--set", s)
	}
	if f.Fast {
		line = append(line, "--fast")
	}
	return shellLine(line)
}

// sentence ends a text with a full stop where it has no end.
func sentence(s string) string {
	if s = strings.TrimSpace(s); s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:") {
		return s
	}
	return s + "."
}

func (v *view) state(m *model) {
	n := m.tally()
	v.StateClass = "good"
	switch {
	case m.dir.Running:
		v.StateClass, v.Unfinished = "busy", fmt.Sprintf("This run was still under way when the report was made: %d of %d trials had ended.", len(m.dir.Summary.Trials), n.planned)
	case n.missing()+n.interrupted > 0:
		v.StateClass, v.Unfinished = "bad", fmt.Sprintf("This run was interrupted: %d of %s are missing. What is here is whole.", n.missing()+n.interrupted, plural(n.planned, "trial"))
	case n.suspect+n.failed > 0:
		v.StateClass = "bad"
	}
}

func (v *view) cards(m *model) {
	n := m.tally()
	class := "good"
	if n.valid < n.planned {
		class = "bad"
	}
	all := outcomes(m.dir.Summary.Trials)
	bad, share := notOK(all)
	errors := card{"none", "operations that did not end ok", "good"}
	if bad > 0 {
		errors = card{percent(share), "of operations did not end ok", "bad"}
	}
	v.Cards = []card{
		{fmt.Sprintf("%d of %d", n.valid, n.planned), "trials valid", class},
		{count(all.OK + bad), "operations measured", ""},
		errors,
		{exact(worstRTT(m.dir.Summary.Trials)) + " ms", "largest error of a link's round trip", ""},
	}
	if r := m.dir.Run; !r.Finished.IsZero() && len(r.Resumed) == 0 {
		v.Cards = append(v.Cards, card{took(r.Finished.Sub(r.Started)), "from first to last trial", ""})
	}
	v.Findings = m.findings()
}

func (v *view) results(m *model) {
	names, columns := m.parameterColumns()
	for _, c := range columns {
		v.Names = append(v.Names, c.head)
	}
	if m.scales.vary() {
		v.Relative = "× that at " + m.scales.text(m.scales.largest())
	}
	most := 0.0
	for _, c := range m.cells {
		most = max(most, c.goodput().Mean)
	}
	for _, c := range m.cells {
		out := pageRow{resultRow: m.cellRow(names, c), First: c == c.group.cells[0] && len(c.group.cells) > 1}
		out.Bad = out.Verdict != record.Valid
		if most > 0 {
			out.Bar = template.CSS(fmt.Sprintf("--share:%.1f%%", 100*c.goodput().Mean/most))
		}
		v.Rows = append(v.Rows, out)
		for _, o := range c.operations {
			l := o.latency
			v.Operations = append(v.Operations, operationRow{Parameters: out.Parameters, Operation: o.name, Count: count(o.count), Failed: count(o.failed),
				Mean: millis(l.Mean), P50: millis(l.P50), P95: millis(l.P95), P99: millis(l.P99), P999: millis(l.P999), Max: millis(l.Max)})
		}
	}
	v.Errors = errorRows(m.dir.Summary.Trials)
	v.Resizings = m.resizings()
	v.Happenings, v.Audits, v.Assertions = m.happenings(), m.audits(), m.assertionRows()
}

// errorRows sums errors over trials, most first.
func errorRows(trials []record.Trial) (rows []errorRow) {
	type key struct{ operation, class, node string }
	var keys []key
	sums := map[key]*record.ErrorCount{}
	for _, t := range trials {
		for _, e := range t.Errors {
			k := key{e.Operation, e.Class, e.Node}
			if sums[k] == nil {
				keys = append(keys, k)
				sums[k] = &record.ErrorCount{Example: e.Example}
			}
			sums[k].Count += e.Count
		}
	}
	slices.SortStableFunc(keys, func(a, b key) int { return int(sums[b].Count - sums[a].Count) })
	for _, k := range keys {
		rows = append(rows, errorRow{k.operation, k.class, k.node, count(sums[k].Count), sums[k].Example})
	}
	return rows
}

func (v *view) charts(m *model) {
	v.Measured = measured(m.groups)
	x, y := m.throughputMeasure(), m.transferMeasure()
	v.Throughput, v.ThroughputNorm = m.absolute(x), m.normalised(x)
	v.Transfer, v.TransferNorm, v.TransferWhat = m.absolute(y), m.normalised(y), y.unit
	v.Traffic = m.trafficGraphs()
	v.Percentiles = m.percentileCurves()
	v.Distributions, v.OtherOperations = m.distributions()
	v.Evidence = m.evidence()
	for _, e := range v.Evidence {
		if e.Bad {
			v.BadTrials++
		}
		v.Replaced += min(1, len(e.Replaced))
		v.Disturbed += min(1, len(e.Disturbed))
	}
	v.Links = m.linkTables()
	v.Laws, v.Packets = m.laws()
}

// fewTrials is how many timelines are shown without being asked for.
const fewTrials = 2

func (v *view) trials(m *model) {
	v.Small = len(m.dir.Summary.Trials) <= fewTrials
	for _, c := range m.cells {
		for _, t := range c.trials {
			x := trialView{ID: strconv.Itoa(t.ID), Name: m.trialName(c, t), Goodput: none, Verdict: t.Verdict.State, Open: v.Small}
			if t.State != record.TrialOK {
				x.Verdict, x.Error = t.State, t.Error
			} else {
				x.Goodput = trialGoodput(t) + " ops/s"
				x.Facts = fmt.Sprintf("measured %s after %s of warm-up and %s of setting up; stopped by %s", seconds(t.DurationS), seconds(t.WarmupS), seconds(t.SetupS), t.Stopped)
				if t.ClusterOf > 0 {
					x.Facts += fmt.Sprintf("; on the cluster of trial %d", t.ClusterOf)
				}
			}
			x.Bad = x.Verdict != record.Valid
			if f, ok := m.timeline(t); ok {
				x.Chart = f.Chart
			}
			v.Trials = append(v.Trials, x)
		}
	}
}

func (v *view) environment(m *model) {
	r := m.dir.Run
	add := func(name, value string) {
		if value != "" {
			v.Environment = append(v.Environment, fact{name, value})
		}
	}
	add("Host", r.Host.Name)
	add("System", r.Host.OS)
	add("Kernel", r.Host.Kernel)
	if r.Host.Cores > 0 {
		add("Processor", fmt.Sprintf("%s, %s", r.Host.CPU, plural(r.Host.Cores, "core")))
	}
	if r.Host.MemoryBytes > 0 {
		add("Memory", fmt.Sprintf("%.1f GiB", float64(r.Host.MemoryBytes)/(1<<30)))
	}
	v.Environment = append(v.Environment, m.machineFacts()...)
	if r.Engine.Name != "" {
		add("Link engine", strings.TrimSuffix(r.Engine.Name+": "+r.Engine.Why, ": "))
	}
	add("Skerry", r.Versions.Skerry)
	add("Go", r.Versions.Go)
	for _, name := range sortedKeys(r.Versions.Databases) {
		add(experiment.Short(name), r.Versions.Databases[name])
	}
	add("Seed", v.Seed)
	add("Started", r.Started.Format(time.RFC1123Z))
	if !r.Finished.IsZero() {
		add("Finished", r.Finished.Format(time.RFC1123Z))
	}
	for _, t := range r.Resumed {
		add("Resumed", t.Format(time.RFC1123Z))
	}
	add("Run directory", m.dir.Summary.Run)
	v.Warnings = r.Warnings
	ids := make([]string, len(r.Plan))
	for i, p := range r.Plan {
		ids[i] = strconv.Itoa(p.ID)
	}
	v.Plan = strings.Join(ids, " ")
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// shellLine writes a command so that a shell reads it back.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		safe := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,%+@", r)
		})
		if !safe {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}

func fileName(path string) string {
	if path == "" {
		return "experiment.yaml"
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}
