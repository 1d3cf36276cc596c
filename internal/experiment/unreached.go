package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// unixTime is more than any trial lasts, and less than any Unix time stamp since 2001.
const unixTime = 1e9 * time.Second

// moment is when a drift changes links, and where that is written.
type moment struct {
	at  time.Duration
	pos strict.Pos
}

// moments returns those of a drift's steps or of its trace's rows, in order; none of mobility, which never ends. The
// drift has been checked.
func (e Experiment) moments() (list []moment) {
	if e.Drift == nil {
		return nil
	}
	for _, s := range e.Drift.Steps {
		list = append(list, moment{at: s.At.Duration()})
	}
	if e.Drift.Trace == "" {
		return list
	}
	r, err := e.openTrace()
	if err != nil {
		return nil
	}
	for i, row := range r.read() {
		list = append(list, moment{row.at, strict.Pos{Source: r.src, Line: r.lines[i], Column: 1}})
	}
	return list
}

// traceTimes refuses a trace whose times cannot be meant: Unix time stamps, and rows that are all after the trial's end.
func (c *checker) traceTimes() {
	moments := c.e.moments()
	if c.e.Drift.Trace == "" || len(moments) == 0 {
		return
	}
	refuse := func(m moment, hint, format string, args ...any) {
		c.problems = append(c.problems, strict.Problem{Pos: m.pos, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if i := slices.IndexFunc(moments, func(m moment) bool { return m.at >= unixTime }); i >= 0 {
		refuse(moments[i], "subtract the time of the first row from every row: times count from the start of the measurement",
			"the time %d s looks like a Unix time stamp", moments[i].at/time.Second)
		return
	}
	if end := c.e.Stop.Time; end > 0 && moments[0].at >= end.Duration() {
		refuse(moments[0], "make the trial longer or the rows earlier", "at %v the trial has ended (stop.time is %v), and no row is earlier", unit.Duration(moments[0].at), end)
	}
}

// DriftNotes says what a trial that ended after a time does not show of its drift: rows or steps that it did not reach,
// links that are dead until its end. A time of 0 is not known.
func (e Experiment) DriftNotes(end time.Duration) (notes []string) {
	moments := e.moments()
	if len(moments) == 0 {
		return nil
	}
	what := "steps of the drift"
	if e.Drift.Trace != "" {
		what = "rows of the trace " + e.Drift.Trace
	}
	reached := moments
	if i := slices.IndexFunc(moments, func(m moment) bool { return m.at >= end }); end > 0 && i >= 0 {
		reached = moments[:i]
		notes = append(notes, fmt.Sprintf("%d of %d %s, from %v on, are not reached: the trial ends after %v",
			len(moments)-i, len(moments), what, unit.Duration(moments[i].at), unit.Duration(end.Round(time.Millisecond))))
	}
	profiles, err := e.Profiles(e.origin.cloud)
	if err != nil {
		return notes
	}
	var early []string
	dead := map[time.Duration][]string{} // links by the moment at which their last outage begins
	for _, p := range profiles {
		if p.outage(0) {
			early = append(early, p.ID)
		}
		if since, ok := p.deadSince(reached); ok {
			dead[since] = append(dead[since], p.ID)
		}
	}
	if early != nil {
		notes = append(notes, fmt.Sprintf("%s: the outage at 0s starts with the measurement, since no database can be set up over a dead link", some(early)))
	}
	for _, m := range moments {
		if links, ok := dead[m.at]; ok {
			notes = append(notes, fmt.Sprintf("%s: dead (100%% loss) from %v to the end of the trial", some(links), unit.Duration(m.at)))
			delete(dead, m.at)
		}
	}
	return notes
}

// some names at most three of several links.
func some(links []string) string {
	const most = 3
	if len(links) == 1 {
		return "link " + links[0]
	}
	if len(links) <= most {
		return "links " + strings.Join(links, ", ")
	}
	return fmt.Sprintf("links %s and %d more", strings.Join(links[:most], ", "), len(links)-most)
}

// outage tells whether a direction loses every packet at a time.
func (p LinkProfile) outage(t time.Duration) bool { return dead(p.AB.At(t)) || dead(p.BA.At(t)) }

func dead(q link.Quality) bool { return q.Loss >= 1 }

// deadSince returns the moment from which on a direction loses every packet, to the last of the moments.
func (p LinkProfile) deadSince(moments []moment) (since time.Duration, ok bool) {
	for _, m := range slices.Backward(moments) {
		if !p.outage(m.at) {
			return since, ok
		}
		since, ok = m.at, true
	}
	return since, ok
}

// BeforeMeasurement returns the qualities of both directions while a trial is set up and warmed up: those at 0s. A
// direction that is dead then has the topology's own loss until the measurement starts, as no database forms over it.
func (p LinkProfile) BeforeMeasurement() (ab, ba link.Quality) {
	ab, ba = p.AB.At(0), p.BA.At(0)
	if dead(ab) {
		ab.Loss = p.loss[0]
	}
	if dead(ba) {
		ba.Loss = p.loss[1]
	}
	return ab, ba
}

// driftNotes are the notes of all trials, each once.
func (e Experiment) driftNotes() (notes []string) {
	type drift struct {
		trace string
		end   unit.Duration
	}
	seen := map[drift]bool{}
	for _, c := range e.Plan() {
		x := c.Experiment
		if x.Drift == nil || x.Drift.Trace != "" && seen[drift{x.Drift.Trace, x.Stop.Time}] {
			continue // a trace may be long, and the cells many
		}
		seen[drift{x.Drift.Trace, x.Stop.Time}] = true
		for _, n := range x.DriftNotes(x.Stop.Time.Duration()) {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	return notes
}
