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

// LinkProfile is the change of one link over the time of a measurement.
type LinkProfile struct {
	ID     string
	AB, BA link.Profile

	// baseLoss is the topology's loss of AB and BA.
	baseLoss [2]float64 // of the topology, of AB and BA
}

// LinkProfiles returns the links of t that the drift changes, in the order of t. t is at scale 1; the profiles are at
// the experiment's scale.
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

// checkedDrift is the checked length of a drift if the experiment has no stop.time.
const checkedDrift = time.Hour

// checkDrift refuses impossible qualities, such as a latency below the jitter.
func (e Experiment) checkDrift(t topology.Topology, profiles map[string]LinkProfile) strict.Problems {
	end := cmp.Or(time.Duration(e.Stop.Time), checkedDrift)
	for _, l := range t.Links {
		p, ok := profiles[l.ID]
		if !ok || e.Drift.Mobility != nil && l.AB.Jitter == 0 { // mobility does not change its jitter
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
	for id, p := range m.LinkProfiles(t, scale) {
		loss := p.At(0).Loss
		profiles[id] = LinkProfile{ID: id, AB: p, BA: p, baseLoss: [2]float64{loss, loss}}
	}
	return profiles
}

// driftingLink is a link with the changes of a drift so far.
type driftingLink struct {
	link.Change // AB and BA are the state so far
	a, b        string
	first       [2]link.Quality
	ab, ba      []link.Step
}

// timeline applies a drift to all links of a topology.
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

// matches reports whether the node or its site has the name; "" matches all.
func (l *timeline) matches(node, name string) bool {
	return name == "" || node == name || l.site[node] == name
}

// changeAt records the qualities of a link from a time on.
func (d *driftingLink) changeAt(at time.Duration, ab, ba link.Quality) {
	if !ab.Equal(*d.AB) {
		d.ab = append(d.ab, link.Step{At: at, Quality: ab})
	}
	if !ba.Equal(*d.BA) {
		d.ba = append(d.ba, link.Step{At: at, Quality: ba})
	}
	*d.AB, *d.BA = ab, ba
}

// profiles returns the profiles of the links that change.
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

// stepProfiles applies steps. Changes of single links override every scale.
func stepProfiles(steps []Step, t topology.Topology, scale float64) (map[string]LinkProfile, strict.Problems) {
	var ps strict.Problems
	l := newTimeline(t, scale)
	var singles []topology.LinkSpec
	for i, s := range steps {
		path := fmt.Sprintf("steps[%d]", i)
		if i > 0 && s.At < steps[i-1].At {
			ps = append(ps, strict.Problem{Path: path + ".at", Message: fmt.Sprintf("%v is before the step above it (%v)", s.At, steps[i-1].At),
				Hint: "put the steps in order"})
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

// hasLink reports whether the topology has a link between the two ends.
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
		return strict.Problem{Path: path + ".between", Message: fmt.Sprintf("no link between %v", s.Between)}
	}
	return strict.Problem{Path: path + ".name", Message: fmt.Sprintf("no link between %v has the name %q", s.Between, s.Name),
		Hint: "list the names with `skerry validate --links`, or remove name to change all of them"}
}

// directionsOf reports whether a spec selects the link from a to b, and in which direction.
func (l *timeline) directionsOf(s topology.LinkSpec, id, a, b string) (forward, back bool) {
	if len(s.Between) != 2 || s.Name != "" && s.Name != id && !strings.HasPrefix(id, s.Name+":") {
		return false, false
	}
	x, y := s.Between[0], s.Between[1]
	return l.matches(a, x) && l.matches(b, y), l.matches(a, y) && l.matches(b, x)
}

// unixTime is longer than any trial, and below any Unix time stamp since 2001.
const unixTime = 1e9 * time.Second

// moment is the time of a drift's change, and its position in the file.
type moment struct {
	at  time.Duration
	pos strict.Pos
}

// moments returns the times of a checked drift's steps or rows, in order; none for mobility, which never ends.
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

// checkTraceTimes refuses Unix time stamps, and traces whose rows are all after the trial's end.
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
			"time %d s looks like a Unix time stamp", moments[i].at/time.Second)
		return
	}
	if end := c.e.Stop.Time; end > 0 && moments[0].at >= end.Duration() {
		refuse(moments[0], "make the trial longer or the rows earlier", "first row at %v is after the end of the trial (stop.time is %v)",
			unit.Duration(moments[0].at), end)
	}
}

// DriftNotes describes the parts of a drift without effect in a trial of length end (0 if unknown): rows or steps after
// the end, and links that remain dead until the end.
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
		notes = append(notes, fmt.Sprintf("%s: the outage at 0s starts with the measurement, since no database can be set up over a dead link",
			listLinks(early)))
	}
	for _, m := range moments {
		if links, ok := dead[m.at]; ok {
			notes = append(notes, fmt.Sprintf("%s: dead (100%% loss) from %v to the end of the trial", listLinks(links), unit.Duration(m.at)))
			delete(dead, m.at)
		}
	}
	return notes
}

// listLinks names at most three links.
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

// isDead reports whether a direction loses every packet at a time.
func (p LinkProfile) isDead(t time.Duration) bool {
	return losesAll(p.AB.At(t)) || losesAll(p.BA.At(t))
}

func losesAll(q link.Quality) bool { return q.Loss >= 1 }

// deadSince returns the moment from which on a direction loses every packet until the last moment.
func (p LinkProfile) deadSince(moments []moment) (since time.Duration, ok bool) {
	for _, m := range slices.Backward(moments) {
		if !p.isDead(m.at) {
			return since, ok
		}
		since, ok = m.at, true
	}
	return since, ok
}

// BeforeMeasurement returns the qualities of both directions during setup and warm-up: those at 0s. A direction that is
// dead at 0s keeps the topology's loss until the measurement starts, since no database forms over a dead link.
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

// allDriftNotes returns the distinct notes of all trials.
func (e Experiment) allDriftNotes() (notes []string) {
	type drift struct {
		trace string
		end   unit.Duration
	}
	seen := map[drift]bool{}
	for _, c := range e.Plan() {
		x := c.Experiment
		if x.Drift == nil || x.Drift.Trace != "" && seen[drift{x.Drift.Trace, x.Stop.Time}] {
			continue // long traces with many cells take time
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
