package experiment

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// workload checks one pool's workload, which the file has at path.
func (c *checker) workload(path string, w *Workload) {
	if w.Name == "" && w.File == "" {
		c.fail(path, "give name (a to f) or file", "no workload is given")
		return
	}
	open := w.Arrival != "closed"
	switch {
	case open && w.Target == 0:
		c.fail(path+".target", "give target, in operations per second", "arrival %s needs a target: an open loop sends at a rate", w.Arrival)
	case !open && w.InFlight > 0:
		c.fail(path+".in_flight", "leave it out, or set arrival to constant or poisson", "in a closed loop threads bounds the operations under way")
	}
	if c.e.given(path+".stall") && w.Target == 0 {
		c.fail(path+".stall", "give target, or leave stall out", "without a target no operation is ever due")
	}
	if w.Timeout == 0 {
		c.fail(path+".timeout", "write 10s", "an operation must have some time")
	}
	if w.Probes != nil {
		c.probes(path, *w.Probes)
	}
	c.properties(path, w)
}

// leastProbe is as often as jobs can be started beside a workload without being one.
const leastProbe = time.Second

func (c *checker) probes(path string, p Probes) {
	if p.Every.Duration() < leastProbe {
		c.fail(path+".probes.every", "", "%v is too often: the least is %v", p.Every, leastProbe)
	}
	if c.e.Audit.Enabled {
		c.fail(path+".probes", "leave out audit or probes", "the audit would not know what the probes write")
	}
}

// ours maps YCSB's properties to the keys here that say the same.
var ours = map[string]string{
	"recordcount": "workload.records", "operationcount": "stop.operations, or workload.expected_operations for the keys alone,", "threadcount": "workload.threads",
	"target": "workload.target", "maxexecutiontime": "stop.time",
}

func (c *checker) properties(path string, w *Workload) {
	for name := range w.Properties {
		if key, ok := ours[name]; ok {
			key = strings.Replace(key, "workload", path, 1)
			c.fail(path+".properties."+name, fmt.Sprintf("set %s in its place", key), "%s is not a property here", name)
		}
	}
	if w.onTree() {
		c.tree(path, w)
		return
	}
	if _, err := c.e.base(*w); err != nil {
		at, hint := path+".name", "YCSB's workloads are "+strings.Join(ycsb.BuiltinNames(), ", ")+"; those on directory trees "+strings.Join(mdtest.Names(), ", ")
		if w.File != "" {
			at, hint = path+".file", "give the path of a YCSB property file, relative to this file"
		}
		c.fail(at, hint, "%v", err)
		return
	}
	full, err := c.e.Properties(Pool{Workload: *w})
	if err != nil {
		c.fail(path, "", "%v", err)
		return
	}
	c.unusedProperties(path, w)
	y, _, err := ycsb.Parse(full)
	if err != nil {
		c.badProperties(path, w, err)
		return
	}
	if sum := y.Mix.Total(); math.Abs(sum-1) > 0.001 {
		c.fail(path, "set the proportions of all operations so that their sum is 1", "the proportions of the operations sum to %.3g", sum)
	}
}

// unusedProperties refuses properties given here that have no effect. Those with a dot may be
// those of a database's client: Check decides on them.
func (c *checker) unusedProperties(path string, w *Workload) {
	for name, value := range w.Properties {
		if why := unused(name, value, nil); why != "" && (ycsb.IsClientProperty(name) || !strings.Contains(name, ".")) {
			c.fail(path+".properties."+name, "", "%s is not used: %s", name, why)
		}
	}
}

// badProperties puts each of YCSB's complaints where its property was set.
func (c *checker) badProperties(path string, w *Workload, err error) {
	for err := range leaves(err) {
		at, text := path, err.Error()
		if w.File != "" {
			at = path + ".file"
		}
		rest, isProperty := strings.CutPrefix(text, "property ")
		name, what, isNamed := strings.Cut(rest, ":")
		switch {
		case !isProperty || !isNamed:
		case w.Properties[name] != "":
			at, text = path+".properties."+name, strings.TrimSpace(what)
		case w.File != "":
			if pos, ok := c.e.placeInFile(*w, name); ok {
				c.problems = append(c.problems, strict.Problem{Pos: pos, Path: at, Message: text})
				continue
			}
		}
		c.fail(at, "", "%s", text)
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
			return err == ycsb.ErrWorkload || err == mdtest.ErrWorkload || yield(err)
		}
		visit(err)
	}
}
