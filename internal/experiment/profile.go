package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// LinkProfile is how one link changes over the time of a measurement.
type LinkProfile struct {
	ID     string
	AB, BA link.Profile

	baseLoss [2]float64 // of the topology, of AB and BA
}

// LinkProfiles returns the links of t that the experiment's drift changes, in the order of t,
// with their qualities at every time. t is at scale 1; the profiles are at the
// experiment's scale.
func (e Experiment) LinkProfiles(t topology.Topology) ([]LinkProfile, error) {
	if e.Drift == nil {
		return nil, nil
	}
	var profiles map[string]LinkProfile
	var ps strict.Problems
	switch d := e.Drift; {
	case d.Mobility != nil:
		if ps = d.Mobility.Check(t); len(ps) == 0 {
			profiles = mobileProfiles(*d.Mobility, t, e.Scale)
		}
		for i := range ps {
			ps[i].Path = strict.Join("mobility", ps[i].Path)
		}
	case d.Trace != "":
		profiles, ps = e.traceProfiles(t)
	default:
		profiles, ps = stepProfiles(d.Steps, t, e.Scale)
	}
	if len(ps) == 0 {
		ps = e.checkDrift(t, profiles)
	}
	if len(ps) > 0 {
		if e.origin == nil {
			return nil, ps
		}
		return nil, ps.Locate(e.origin.root, "drift")
	}
	var list []LinkProfile
	for _, l := range t.Links {
		if p, ok := profiles[l.ID]; ok {
			list = append(list, p)
		}
	}
	return list, nil
}

// checkedDrift is how long a drift is followed for mistakes, of an experiment without stop.time.
const checkedDrift = time.Hour

// checkDrift refuses a drift that gives a link a quality which is not possible, such as a latency that
// becomes too small for the jitter.
func (e Experiment) checkDrift(t topology.Topology, profiles map[string]LinkProfile) strict.Problems {
	end := cmp.Or(time.Duration(e.Stop.Time), checkedDrift)
	for _, l := range t.Links {
		p, ok := profiles[l.ID]
		if !ok || e.Drift.Mobility != nil && l.AB.Jitter == 0 { // a journey does not change it
			continue
		}
		for at := time.Duration(0); at <= end; at += e.Drift.Every.Duration() {
			if err := errors.Join(p.AB.At(at).Validate(), p.BA.At(at).Validate()); err != nil {
				return strict.Problems{{Message: fmt.Sprintf("%s after %v: %v", l.ID, at, err), Err: err}}
			}
		}
	}
	return nil
}

func mobileProfiles(m topology.Mobility, t topology.Topology, scale float64) map[string]LinkProfile {
	profiles := map[string]LinkProfile{}
	for id, p := range m.Profiles(t, scale) {
		loss := p.At(0).Loss
		profiles[id] = LinkProfile{ID: id, AB: p, BA: p, baseLoss: [2]float64{loss, loss}}
	}
	return profiles
}

// driftingLink is a link on its way through the changes of a drift.
type driftingLink struct {
	link.Change // AB and BA are the state so far
	a, b        string
	first       [2]link.Quality
	ab, ba      []link.Step
}

// timeline follows all links of a topology.
type timeline struct {
	links []*driftingLink
	site  map[string]string // of nodes
}

func newTimeline(t topology.Topology, scale float64) *timeline {
	l := &timeline{site: map[string]string{}}
	for _, n := range t.Nodes {
		l.site[n.Name] = n.Site
	}
	for _, x := range topology.Scale(t, scale).Links {
		ab, ba := x.AB, x.BA
		l.links = append(l.links, &driftingLink{Change: link.Change{ID: x.ID, AB: &ab, BA: &ba}, a: x.A, b: x.B, first: [2]link.Quality{ab, ba}})
	}
	return l
}

// matches says whether a node or its site has the name; "" is the name of all.
func (l *timeline) matches(node, name string) bool {
	return name == "" || node == name || l.site[node] == name
}

// changeAt notes the state of a link at a time.
func (d *driftingLink) changeAt(at time.Duration, ab, ba link.Quality) {
	if !ab.Equal(*d.AB) {
		d.ab = append(d.ab, link.Step{At: at, Quality: ab})
	}
	if !ba.Equal(*d.BA) {
		d.ba = append(d.ba, link.Step{At: at, Quality: ba})
	}
	*d.AB, *d.BA = ab, ba
}

// profiles are those of the links that ever change.
func (l *timeline) profiles() map[string]LinkProfile {
	profiles := map[string]LinkProfile{}
	for _, d := range l.links {
		if len(d.ab)+len(d.ba) > 0 {
			profiles[d.ID] = LinkProfile{ID: d.ID, AB: link.Steps(d.first[0], d.ab...), BA: link.Steps(d.first[1], d.ba...),
				baseLoss: [2]float64{d.first[0].Loss, d.first[1].Loss}}
		}
	}
	return profiles
}

// stepProfiles follows steps: what a step says of single links holds on top of every scale.
func stepProfiles(steps []Step, t topology.Topology, scale float64) (map[string]LinkProfile, strict.Problems) {
	var ps strict.Problems
	l := newTimeline(t, scale)
	var singles []topology.LinkSpec
	for i, s := range steps {
		path := fmt.Sprintf("steps[%d]", i)
		if i > 0 && s.At < steps[i-1].At {
			ps = append(ps, strict.Problem{Path: path + ".at", Message: fmt.Sprintf("%v is before the step above it (%v)", s.At, steps[i-1].At), Hint: "put the steps in order"})
		}
		if s.Scale == nil && len(s.Links) == 0 {
			ps = append(ps, strict.Problem{Path: path, Message: "the step changes nothing", Hint: "give scale or links"})
		}
		if s.Scale != nil {
			scale = *s.Scale
		}
		for k, single := range s.Links {
			if !l.hasLink(single) {
				ps = append(ps, l.missingLink(fmt.Sprintf("%s.links[%d]", path, k), single))
			}
		}
		singles = append(singles, s.Links...)
		for k, x := range topology.Scale(t, scale).Links {
			ab, ba := x.AB, x.BA
			for _, single := range singles {
				if forward, back := l.directionsOf(single, x.ID, x.A, x.B); forward || back {
					ab, ba = single.Apply(ab, ba, !forward)
				}
			}
			l.links[k].changeAt(s.At.Duration(), ab, ba)
		}
	}
	return l.profiles(), ps
}

// hasLink says whether any link is between the two ends.
func (l *timeline) hasLink(s topology.LinkSpec) bool {
	return slices.ContainsFunc(l.links, func(d *driftingLink) bool {
		forward, back := l.directionsOf(s, d.ID, d.a, d.b)
		return forward || back
	})
}

// missingLink is the problem of a step's link that the topology does not have.
func (l *timeline) missingLink(path string, s topology.LinkSpec) strict.Problem {
	unnamed := s
	unnamed.Name = ""
	if s.Name == "" || !l.hasLink(unnamed) {
		return strict.Problem{Path: path + ".between", Message: fmt.Sprintf("there is no link between %v", s.Between)}
	}
	return strict.Problem{Path: path + ".name", Message: fmt.Sprintf("no link between %v is called %q", s.Between, s.Name),
		Hint: "skerry validate --links lists their names; without a name all of them change"}
}

// directionsOf says whether a link from a to b is among those meant, in which direction.
func (l *timeline) directionsOf(s topology.LinkSpec, id, a, b string) (forward, back bool) {
	if len(s.Between) != 2 || s.Name != "" && s.Name != id && !strings.HasPrefix(id, s.Name+":") {
		return false, false
	}
	x, y := s.Between[0], s.Between[1]
	return l.matches(a, x) && l.matches(b, y), l.matches(a, y) && l.matches(b, x)
}

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
	for i, row := range r.readRows() {
		list = append(list, moment{row.at, strict.Pos{Source: r.src, Line: r.lines[i], Column: 1}})
	}
	return list
}

// checkTraceTimes refuses a trace whose times cannot be meant: Unix time stamps, and rows that are all after the trial's end.
func (c *checker) checkTraceTimes() {
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
	profiles, err := e.LinkProfiles(e.origin.cloud)
	if err != nil {
		return notes
	}
	var early []string
	dead := map[time.Duration][]string{} // links by the moment at which their last outage begins
	for _, p := range profiles {
		if p.isDead(0) {
			early = append(early, p.ID)
		}
		if since, ok := p.deadSince(reached); ok {
			dead[since] = append(dead[since], p.ID)
		}
	}
	if early != nil {
		notes = append(notes, fmt.Sprintf("%s: the outage at 0s starts with the measurement, since no database can be set up over a dead link", listLinks(early)))
	}
	for _, m := range moments {
		if links, ok := dead[m.at]; ok {
			notes = append(notes, fmt.Sprintf("%s: dead (100%% loss) from %v to the end of the trial", listLinks(links), unit.Duration(m.at)))
			delete(dead, m.at)
		}
	}
	return notes
}

// listLinks names at most three of several links.
func listLinks(links []string) string {
	const most = 3
	if len(links) == 1 {
		return "link " + links[0]
	}
	if len(links) <= most {
		return "links " + strings.Join(links, ", ")
	}
	return fmt.Sprintf("links %s and %d more", strings.Join(links[:most], ", "), len(links)-most)
}

// isDead tells whether a direction loses every packet at a time.
func (p LinkProfile) isDead(t time.Duration) bool {
	return losesAll(p.AB.At(t)) || losesAll(p.BA.At(t))
}

func losesAll(q link.Quality) bool { return q.Loss >= 1 }

// deadSince returns the moment from which on a direction loses every packet, to the last of the moments.
func (p LinkProfile) deadSince(moments []moment) (since time.Duration, ok bool) {
	for _, m := range slices.Backward(moments) {
		if !p.isDead(m.at) {
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
	if losesAll(ab) {
		ab.Loss = p.baseLoss[0]
	}
	if losesAll(ba) {
		ba.Loss = p.baseLoss[1]
	}
	return ab, ba
}

// allDriftNotes are the notes of all trials, each once.
func (e Experiment) allDriftNotes() (notes []string) {
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
