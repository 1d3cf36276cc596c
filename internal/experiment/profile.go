package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/link"
	"skerry/internal/topology"
)

// LinkProfile is how one link changes over the time of a measurement.
type LinkProfile struct {
	ID     string
	AB, BA link.Profile

	loss [2]float64 // of the topology, of AB and BA
}

// Profiles returns the links of t that the experiment's drift changes, in the order of t,
// with their qualities at every time. t is at scale 1; the profiles are at the
// experiment's scale.
func (e Experiment) Profiles(t topology.Topology) ([]LinkProfile, error) {
	if e.Drift == nil {
		return nil, nil
	}
	var profiles map[string]LinkProfile
	var ps strict.Problems
	switch d := e.Drift; {
	case d.Mobility != nil:
		if ps = d.Mobility.Check(t); len(ps) == 0 {
			profiles = mobile(*d.Mobility, t, e.Scale)
		}
		for i := range ps {
			ps[i].Path = strict.Join("mobility", ps[i].Path)
		}
	case d.Trace != "":
		profiles, ps = e.trace(t)
	default:
		profiles, ps = stepped(d.Steps, t, e.Scale)
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

func mobile(m topology.Mobility, t topology.Topology, scale float64) map[string]LinkProfile {
	profiles := map[string]LinkProfile{}
	for id, p := range m.Profiles(t, scale) {
		loss := p.At(0).Loss
		profiles[id] = LinkProfile{ID: id, AB: p, BA: p, loss: [2]float64{loss, loss}}
	}
	return profiles
}

// drifting is a link on its way through the changes of a drift.
type drifting struct {
	link.Change // AB and BA are the state so far
	a, b        string
	first       [2]link.Quality
	ab, ba      []link.Step
}

// timeline follows all links of a topology.
type timeline struct {
	links []*drifting
	site  map[string]string // of nodes
}

func newTimeline(t topology.Topology, scale float64) *timeline {
	l := &timeline{site: map[string]string{}}
	for _, n := range t.Nodes {
		l.site[n.Name] = n.Site
	}
	for _, x := range topology.Scale(t, scale).Links {
		ab, ba := x.AB, x.BA
		l.links = append(l.links, &drifting{Change: link.Change{ID: x.ID, AB: &ab, BA: &ba}, a: x.A, b: x.B, first: [2]link.Quality{ab, ba}})
	}
	return l
}

// is says whether a node or its site has the name; "" is the name of all.
func (l *timeline) is(node, name string) bool {
	return name == "" || node == name || l.site[node] == name
}

// change notes the state of a link at a time.
func (d *drifting) change(at time.Duration, ab, ba link.Quality) {
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
				loss: [2]float64{d.first[0].Loss, d.first[1].Loss}}
		}
	}
	return profiles
}

// stepped follows steps: what a step says of single links holds on top of every scale.
func stepped(steps []Step, t topology.Topology, scale float64) (map[string]LinkProfile, strict.Problems) {
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
			if !l.joins(single) {
				ps = append(ps, l.missing(fmt.Sprintf("%s.links[%d]", path, k), single))
			}
		}
		singles = append(singles, s.Links...)
		for k, x := range topology.Scale(t, scale).Links {
			ab, ba := x.AB, x.BA
			for _, single := range singles {
				if forward, back := l.ends(single, x.ID, x.A, x.B); forward || back {
					ab, ba = single.Apply(ab, ba, !forward)
				}
			}
			l.links[k].change(s.At.Duration(), ab, ba)
		}
	}
	return l.profiles(), ps
}

// joins says whether any link is between the two ends.
func (l *timeline) joins(s topology.LinkSpec) bool {
	return slices.ContainsFunc(l.links, func(d *drifting) bool {
		forward, back := l.ends(s, d.ID, d.a, d.b)
		return forward || back
	})
}

// missing is the problem of a step's link that the topology does not have.
func (l *timeline) missing(path string, s topology.LinkSpec) strict.Problem {
	unnamed := s
	unnamed.Name = ""
	if s.Name == "" || !l.joins(unnamed) {
		return strict.Problem{Path: path + ".between", Message: fmt.Sprintf("there is no link between %v", s.Between)}
	}
	return strict.Problem{Path: path + ".name", Message: fmt.Sprintf("no link between %v is called %q", s.Between, s.Name),
		Hint: "skerry validate --links lists their names; without a name all of them change"}
}

// ends says whether a link from a to b is among those meant, in which direction.
func (l *timeline) ends(s topology.LinkSpec, id, a, b string) (forward, back bool) {
	if len(s.Between) != 2 || s.Name != "" && s.Name != id && !strings.HasPrefix(id, s.Name+":") {
		return false, false
	}
	x, y := s.Between[0], s.Between[1]
	return l.is(a, x) && l.is(b, y), l.is(a, y) && l.is(b, x)
}
