package experiment

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
	"skerry/internal/record/metric"
)

// checkWorkload checks one pool's workload, at path in the file.
func (c *checker) checkWorkload(path string, w *Workload) {
	if w.Name == "" && w.File == "" {
		c.fail(path, "give name (a to f) or file", "workload is empty")
		return
	}
	open := w.Arrival != "closed"
	switch {
	case open && w.Target == 0:
		c.fail(path+".target", "give target, in operations per second", "arrival %s needs a target rate", w.Arrival)
	case !open && w.InFlight > 0:
		c.fail(path+".in_flight", "remove it, or set arrival to constant or poisson",
			"in_flight has no effect in a closed loop: threads limits the concurrent operations")
	}
	if c.e.isSet(path+".stall") && w.Target == 0 {
		c.fail(path+".stall", "give target, or remove stall", "stall has no effect without a target")
	}
	if w.Timeout == 0 {
		c.fail(path+".timeout", "write 10s", "timeout must be positive")
	}
	if w.Probes != nil {
		c.checkProbes(path, *w.Probes)
	}
	c.checkProperties(path, w)
}

// minProbeInterval is the shortest interval at which jobs remain a probe and not a load.
const minProbeInterval = time.Second

func (c *checker) checkProbes(path string, p Probes) {
	if p.Every.Duration() < minProbeInterval {
		c.fail(path+".probes.every", "", "interval %v is below the minimum %v", p.Every, minProbeInterval)
	}
	if c.e.Audit.Enabled {
		c.fail(path+".probes", "remove audit or probes", "an audit does not cover the writes of probes")
	}
}

// replacingKeys maps YCSB's properties to the equivalent keys of the file.
var replacingKeys = map[string]string{
	"recordcount": "workload.records", "operationcount": "stop.operations, or workload.expected_operations for the keys alone,",
	"threadcount": "workload.threads",
	"target":      "workload.target", "maxexecutiontime": "stop.time",
}

func (c *checker) checkProperties(path string, w *Workload) {
	for name := range w.Properties {
		if key, ok := replacingKeys[name]; ok {
			key = strings.Replace(key, "workload", path, 1)
			c.fail(path+".properties."+name, fmt.Sprintf("set %s instead", key), "property %s is a key of the experiment", name)
		}
	}
	if w.isTree() {
		c.checkTree(path, w)
		return
	}
	if _, err := c.e.baseProperties(*w); err != nil {
		at := path + ".name"
		hint := "use a workload of YCSB (" + strings.Join(ycsb.BuiltinNames(), ", ") +
			") or on directory trees (" + strings.Join(mdtest.Names(), ", ") + ")"
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
	c.checkUnusedProperties(path, w)
	y, _, err := ycsb.Parse(full)
	if err != nil {
		c.reportProperties(path, w, err)
		return
	}
	if sum := y.Mix.Total(); math.Abs(sum-1) > 0.001 {
		c.fail(path, "set the proportions of all operations so that they add up to 1", "proportions of operations add up to %.3g", sum)
	}
}

// checkUnusedProperties refuses properties without effect. CheckCapabilities decides on those with a dot, which may
// belong to a database's client.
func (c *checker) checkUnusedProperties(path string, w *Workload) {
	for name, value := range w.Properties {
		if why := unusedReason(name, value, nil); why != "" && (ycsb.IsClientProperty(name) || !strings.Contains(name, ".")) {
			c.fail(path+".properties."+name, "", "property %s has no effect: %s", name, why)
		}
	}
}

// reportProperties reports each of YCSB's errors at the position of its property.
func (c *checker) reportProperties(path string, w *Workload, err error) {
	for err := range leafErrors(err) {
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
			if pos, ok := c.e.propertyPos(*w, name); ok {
				c.problems = append(c.problems, strict.Problem{Pos: pos, Path: at, Message: text})
				continue
			}
		}
		c.fail(at, "", "%s", text)
	}
}

// leafErrors iterates over the errors in a joined error, without the sentinels.
func leafErrors(err error) iter.Seq[error] {
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

// checkWorkloads checks every pool, and the combination of pools.
func (c *checker) checkWorkloads() {
	e := c.e
	several := c.e.isSet("workloads")
	switch {
	case several && len(e.Workloads) == 0:
		c.fail("workloads", "give at least one, or use workload", "workloads is empty")
		return
	case several:
		e.Workload = Workload{}
	}
	pools := e.Pools()
	for i := range pools {
		if several {
			c.checkPoolName(i)
		}
		w := &e.Workload
		if several {
			w = &e.Workloads[i].Workload
		}
		c.checkWorkload(pools[i].path, w)
	}
	if len(c.problems) == 0 && several {
		c.checkSharedTable(e.Pools())
	}
}

func (c *checker) checkPoolName(i int) {
	name, path := c.e.Workloads[i].Name, fmt.Sprintf("workloads[%d].name", i)
	if metric.IsReserved(name) {
		c.fail(path, "choose another name", "workload name %q is the name of a figure", name)
	}
	if slices.ContainsFunc(c.e.Workloads[:i], func(p Pool) bool { return p.Name == name }) {
		c.fail(path, "choose another name", "duplicate workload name %q", name)
	}
}

// checkSharedTable refuses pools that interfere with each other on their shared table.
func (c *checker) checkSharedTable(pools []Pool) {
	if len(pools) == 1 {
		return
	}
	first, err := c.e.YCSBWorkload(pools[0])
	if err != nil {
		return // reported elsewhere
	}
	inserts := ""
	var writers []span
	for _, p := range pools {
		w, err := c.e.YCSBWorkload(p)
		if err != nil {
			return
		}
		if p.Workload.isTree() {
			c.fail(p.path+".name", "use YCSB's workloads, or a single workload",
				"a workload on a directory tree cannot run next to others: they would use the same names")
			continue
		}
		if w.RecordCount != first.RecordCount {
			c.fail(p.path+".records", fmt.Sprintf("write %d, as in %s", first.RecordCount, pools[0].Name),
				"workloads share one table: %d records differ from %d", w.RecordCount, first.RecordCount)
		}
		if !sameTable(w, first) {
			c.fail(p.path, fmt.Sprintf("set the properties as in %s", pools[0].Name),
				"workloads share one table: this workload has other records (table, fields, lengths, keys)")
		}
		if w.Mix.Insert > 0 && inserts != "" {
			c.fail(p.path, "insert with one workload only", "%s inserts the same keys", inserts)
		}
		if w.Mix.Insert > 0 {
			inserts = p.Name
			if end := w.InsertStart + w.InsertCount; end < w.RecordCount {
				c.fail(p.path, "remove insertcount", "inserts existing records, from %d on", end)
			}
		}
		if !c.e.writes(p) {
			continue
		}
		mine := span{p.Name, w.InsertStart, w.InsertStart + w.InsertCount}
		if d := w.Requests.Distribution; d == ycsb.Latest || d == ycsb.Exponential {
			mine.from, mine.to = 0, w.RecordCount // they choose from the newest record of the whole table
		}
		if i := slices.IndexFunc(writers, mine.overlaps); i >= 0 && c.e.Audit.Enabled {
			c.fail("audit", "separate their records (properties insertstart and insertcount), write with one workload only, or remove audit",
				"%s and %s write the same records, so their versions are ambiguous", writers[i].pool, p.Name)
		}
		writers = append(writers, mine)
	}
	if c.e.Audit.Enabled && len(writers) == 0 {
		c.fail("audit", "remove audit", "no workload writes")
	}
}

// span is the range of records that a pool uses; to is exclusive.
type span struct {
	pool     string
	from, to int64
}

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }

// sameTable reports whether two workloads describe the same records.
func sameTable(a, b ycsb.Workload) bool {
	return a.Table == b.Table && a.Fields == b.Fields && a.FieldPrefix == b.FieldPrefix && reflect.DeepEqual(a.FieldLength, b.FieldLength) &&
		a.OrderedKeys == b.OrderedKeys && a.ZeroPadding == b.ZeroPadding && a.DataIntegrity == b.DataIntegrity
}

// isTree reports whether the workload runs on a directory tree.
func (w Workload) isTree() bool { return w.File == "" && slices.Contains(mdtest.Names(), w.Name) }

// Tree returns the workload on a directory tree, nil for a workload on records.
func (w Workload) Tree() (*mdtest.Workload, error) {
	if !w.isTree() {
		return nil, nil
	}
	return mdtest.Parse(w.Name, w.Records, w.Properties)
}

// checkTree checks a workload on a directory tree.
func (c *checker) checkTree(path string, w *Workload) {
	if _, err := w.Tree(); err != nil {
		c.reportProperties(path, w, err)
	}
	if w.Probes != nil {
		c.fail(path+".probes", "remove probes", "probes on a directory tree would use the same names")
	}
}

// treeHasOperation reports whether a workload on a directory tree has an operation.
func treeHasOperation(w *mdtest.Workload, operation string) bool {
	for k := range mdtest.Kinds {
		if operationName(k.String()) == operation {
			return w.Uses(k)
		}
	}
	return false
}
