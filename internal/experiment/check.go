package experiment

import (
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/advice"
	"skerry/internal/strict"
	"skerry/internal/topology"
	"skerry/internal/unit"
	"skerry/internal/ycsb"
)

// minMemory is less than any database starts in.
const minMemory = 16 << 20

// minEvery is as often as links can be set: changing all of azure8 takes some milliseconds.
const minEvery = unit.Duration(10 * time.Millisecond)

// finish completes an experiment that was decoded and returns what cannot be: the
// combinations that no single field shows.
func (e *Experiment) finish() strict.Problems {
	c := &checker{e: e}
	c.stop()
	c.workload()
	if c.cloud(); len(c.problems) == 0 {
		c.drift()
	}
	return c.problems
}

type checker struct {
	e        *Experiment
	problems strict.Problems
}

func (c *checker) fail(path, hint, format string, args ...any) {
	c.problems = append(c.problems, c.e.problem(path, hint, format, args...))
}

func (c *checker) stop() {
	s := &c.e.Stop
	if c.e.given("stop.time") && s.Time == 0 {
		c.fail("stop.time", "leave it out for no limit", "a measurement of no time measures nothing")
	}
	if s.Operations == 0 && s.Time == 0 {
		s.Time = defaultTime
	}
	if s.Confidence >= 1 {
		c.fail("stop.confidence", "5% is usual", "an interval as wide as the mean says nothing")
	}
	if s.Time > 0 && s.MinTime > s.Time {
		if s.Confidence > 0 && c.e.given("stop.min_time") && !c.e.origin.fast {
			c.fail("stop.min_time", "make it shorter than time", "after %v, when the trial has ended (stop.time), confidence cannot end it", s.MinTime)
		}
		s.MinTime = s.Time
	}
}

func (c *checker) workload() {
	w := &c.e.Workload
	if w.Name == "" && w.File == "" {
		c.fail("workload", "give name (a to f) or file", "no workload is given")
		return
	}
	open := w.Arrival != "closed"
	switch {
	case open && w.Target == 0:
		c.fail("workload.target", "give target, in operations per second", "arrival %s needs a target: an open loop sends at a rate", w.Arrival)
	case !open && w.InFlight > 0:
		c.fail("workload.in_flight", "leave it out, or set arrival to constant or poisson", "in a closed loop threads bounds the operations under way")
	}
	if c.e.given("workload.stall") && w.Target == 0 {
		c.fail("workload.stall", "give target, or leave stall out", "without a target no operation is ever due")
	}
	if w.Timeout == 0 {
		c.fail("workload.timeout", "write 10s", "an operation must have some time")
	}
	c.properties()
}

// ours maps YCSB's properties to the keys here that say the same.
var ours = map[string]string{
	"recordcount": "workload.records", "operationcount": "stop.operations", "threadcount": "workload.threads",
	"target": "workload.target", "maxexecutiontime": "stop.time",
}

func (c *checker) properties() {
	w := &c.e.Workload
	for name := range w.Properties {
		if key, ok := ours[name]; ok {
			c.fail("workload.properties."+name, fmt.Sprintf("set %s in its place", key), "%s is not a property here", name)
		}
	}
	p, err := c.e.base()
	if err != nil {
		path, hint := "workload.name", "YCSB's workloads are "+strings.Join(ycsb.Names(), ", ")
		if w.File != "" {
			path, hint = "workload.file", "give the path of a YCSB property file, relative to this file"
		}
		c.fail(path, hint, "%v", err)
		return
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(p["recordcount"]), 10, 64); err == nil && w.File != "" && !c.e.given("workload.records") {
		w.Records = n
	}
	full, err := c.e.Properties()
	if err != nil {
		c.fail("workload", "", "%v", err)
		return
	}
	y, warnings, err := ycsb.Parse(full)
	c.unknownProperties(warnings)
	if err != nil {
		c.badProperties(err)
		return
	}
	if sum := y.Mix.Total(); math.Abs(sum-1) > 0.001 {
		c.fail("workload", "set the proportions of all operations so that their sum is 1", "the proportions of the operations sum to %.3g", sum)
	}
}

// unknownProperties makes mistakes of YCSB's warnings about properties given here. Those in
// a property file stay warnings: it may be written for other programs too.
func (c *checker) unknownProperties(warnings []string) {
	for _, w := range warnings {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "property "), " ")
		if _, given := c.e.Workload.Properties[name]; given {
			c.fail("workload.properties."+name, "", "%s", w)
		}
	}
}

// badProperties puts each of YCSB's complaints where its property was given.
func (c *checker) badProperties(err error) {
	for err := range leaves(err) {
		path, text := "workload", err.Error()
		if c.e.Workload.File != "" {
			path = "workload.file"
		}
		if rest, ok := strings.CutPrefix(text, "property "); ok {
			if name, _, ok := strings.Cut(rest, ":"); ok && c.e.Workload.Properties[name] != "" {
				path, text = "workload.properties."+name, strings.TrimSpace(strings.TrimPrefix(rest, name+":"))
			}
		}
		c.fail(path, "", "%s", text)
	}
}

// leaves visits the errors that a joined error holds, without the sentinels among them.
func leaves(err error) iter.Seq[error] {
	return func(yield func(error) bool) {
		var visit func(error) bool
		visit = func(err error) bool {
			switch e := err.(type) {
			case interface{ Unwrap() []error }:
				for _, inner := range e.Unwrap() {
					if !visit(inner) {
						return false
					}
				}
				return true
			case interface{ Unwrap() error }:
				return visit(e.Unwrap())
			}
			return err == ycsb.ErrWorkload || yield(err)
		}
		visit(err)
	}
}

// drift checks that the links can drift as asked, and do so before the trial ends.
func (c *checker) drift() {
	d := c.e.Drift
	if d == nil {
		return
	}
	if len(d.Steps) == 0 && d.Trace == "" && d.Mobility == nil {
		c.fail("drift", "give steps, trace or mobility", "nothing says how the links drift")
		return
	}
	if d.Every < minEvery {
		c.fail("drift.every", "100ms is usual", "%v is too often: the least is %v", d.Every, minEvery)
	}
	end := c.e.Stop.Time
	for i, s := range d.Steps {
		if end > 0 && s.At >= end {
			c.fail(fmt.Sprintf("drift.steps[%d].at", i), "make the trial longer or the step earlier", "at %v the trial has ended (stop.time is %v)", s.At, end)
		}
	}
	if _, err := c.e.Profiles(c.e.origin.cloud); err != nil {
		c.problems = append(c.problems, asProblems(err, strict.Pos{})...)
	}
}

func (c *checker) cloud() {
	e := c.e
	t, err := e.Topology.Build(e.origin.dir, os.ReadFile)
	if err != nil {
		ps := asProblems(err, strict.Pos{})
		c.problems = append(c.problems, ps.Locate(e.origin.root, "topology")...)
		return
	}
	e.origin.cloud, err = topology.WithClient(t, e.Client.Site)
	if err != nil {
		c.fail("client.site", advice.Of(err), "%v", err)
		return
	}
	for i, n := range e.origin.cloud.Nodes {
		if n.Role == topology.Client && len(e.origin.cloud.Nodes) > len(t.Nodes) {
			e.origin.cloud.Nodes[i].CPU, e.origin.cloud.Nodes[i].Memory = e.Client.CPU, int64(e.Client.Memory)
		}
	}
	for _, n := range e.origin.cloud.Nodes {
		if n.Memory > 0 && n.Memory < minMemory {
			c.fail("topology.defaults.memory", "4GiB is what the papers' machines had", "%v are too few for anything to start on %s", unit.Bytes(n.Memory), n.Name)
			break
		}
	}
	c.nodes(t)
	c.connected()
}

// nodes chooses the nodes that carry the database.
func (c *checker) nodes(t topology.Topology) {
	e := c.e
	var data []string
	for _, n := range t.Nodes {
		if n.Role == topology.Data {
			data = append(data, n.Name)
		}
	}
	switch d := e.Database; {
	case len(d.Nodes) > 0:
		for i, name := range d.Nodes {
			path := fmt.Sprintf("database.nodes[%d]", i)
			if !slices.Contains(data, name) {
				c.fail(path, meant(name, data), "%q is no data node of the topology", name)
			} else if slices.Contains(d.Nodes[:i], name) {
				c.fail(path, "", "%s is named twice", name)
			}
		}
		e.origin.nodes = slices.DeleteFunc(data, func(n string) bool { return !slices.Contains(d.Nodes, n) })
	case d.Count > len(data):
		c.fail("database.count", "", "%d nodes are asked for, the topology has %d data nodes", d.Count, len(data))
	case d.Count > 0:
		e.origin.nodes = data[:d.Count]
	case len(data) == 0:
		c.fail("topology", "", "there is no data node")
	default:
		e.origin.nodes = data
	}
}

// connected checks that every member of the cluster and the client reach each other: nodes
// do not forward for others.
func (c *checker) connected() {
	links := map[[2]string]bool{}
	for _, l := range c.e.origin.cloud.Links {
		links[[2]string{l.A, l.B}], links[[2]string{l.B, l.A}] = true, true
	}
	all := append(slices.Clone(c.e.origin.nodes), c.e.ClientNode())
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !links[[2]string{a, b}] {
				c.fail("topology", "connect: full links every pair", "there is no link between %s and %s, and nodes do not forward for others", a, b)
				return
			}
		}
	}
}

// meant is the hint for a name that is not among the known ones.
func meant(name string, known []string) string {
	if near := strict.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known are " + strings.Join(known, ", ")
}
