package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/load/ycsb"
	"skerry/internal/record/metric"
)

// checkAssertions checks that every line can be read and asks for what the experiment measures.
func (c *checker) checkAssertions() {
	for i, text := range c.e.Assert {
		path := fmt.Sprintf("assert[%d]", i)
		l, err := metric.ParseAssertion(text)
		var s *metric.SyntaxError
		switch {
		case errors.As(err, &s):
			p := c.e.problem(path, s.Hint, "%s", s.Message)
			p.Pos, p.Err = p.Pos.Into(s.Offset), err
			c.problems = append(c.problems, p)
		case l.Metric.Audit && !c.e.Audit.Enabled:
			c.fail(path, "set audit: true", "%s is known only where acknowledged writes are audited", l.Name)
		case l.Metric.Pool != "" && len(c.e.Workloads) == 0:
			p := c.e.problem(path, "", "%v", metric.UnknownError(l.Name))
			p.Pos = p.Pos.Into(strings.Index(text, l.Name))
			c.problems = append(c.problems, p)
		case l.Metric.Pool != "" && !c.hasPool(l.Metric.Pool):
			c.fail(path, suggestName(l.Metric.Pool, c.e.poolNames()), "no workload is called %q", l.Metric.Pool)
		case l.Metric.Operation != "" && l.Metric.Pool == "" && len(c.e.Workloads) > 0:
			c.fail(path, "write "+c.e.Workloads[0].Name+"."+l.Name, "%s is which workload's? There are several", l.Name)
		case l.Metric.Operation != "" && !c.hasOperation(l.Metric.Pool, l.Metric.Operation):
			c.fail(path, "leave it out, or change the workload", "the workload does no %s, so there is no %s", l.Metric.Operation, l.Name)
		case l.Metric.Event != "" && !c.hasEvent(l.Metric.Event):
			hint := "there are no events"
			if names := c.eventNames(); len(names) > 0 {
				hint = "there are " + strings.Join(names, ", ")
			}
			if near := suggest.Nearest(l.Metric.Event, c.eventNames()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.fail(path, hint, "no event is called %q", l.Metric.Event)
		}
	}
}

// eventNames are what assertions may call events: their names and kinds.
func (c *checker) eventNames() (names []string) {
	for _, e := range c.e.Events {
		for _, n := range []string{e.Name, e.Kind()} {
			if n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

func (c *checker) hasEvent(name string) bool { return slices.Contains(c.eventNames(), name) }

// hasPool tells whether a pool has the name.
func (c *checker) hasPool(pool string) bool { return slices.Contains(c.e.poolNames(), pool) }

// hasOperation tells whether a pool's workload has an operation.
func (c *checker) hasOperation(pool, operation string) bool {
	pools := c.e.Pools()
	i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == pool })
	if i < 0 {
		return true // told elsewhere
	}
	t, badTree := pools[i].Workload.Tree()
	w, err := c.e.YCSBWorkload(pools[i])
	if err != nil || badTree != nil {
		return true // told elsewhere
	}
	if t != nil {
		return treeHasOperation(t, operation)
	}
	for k := range ycsb.Kinds {
		if kindName(k) == operation {
			return w.Uses(k)
		}
	}
	return false
}

func kindName(k ycsb.Kind) string { return operationName(k.String()) }

// operationName is what assertions call an operation of results.
func operationName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// minAuditedValue is the shortest value that has room for a version.
const minAuditedValue = 16

// checkAudit checks that values can carry versions.
func (c *checker) checkAudit() {
	if !c.e.Audit.Enabled {
		return
	}
	for _, p := range c.e.Pools() {
		if p.Workload.isTree() {
			continue
		}
		if w, err := c.e.YCSBWorkload(p); err == nil { // else it is told elsewhere
			c.checkVersions(w)
		}
	}
}

// checkVersions checks that the values of a workload have room for versions, which nothing else takes.
func (c *checker) checkVersions(w ycsb.Workload) {
	if w.DataIntegrity {
		c.fail("audit", "leave dataintegrity out", "dataintegrity fixes every value by its key, an audit puts versions into them")
	}
	if w.Mix.Delete > 0 {
		c.fail("audit", "leave deleteproportion out", "an audit does not follow deletes")
	}
	least := w.FieldLength.Max
	switch w.FieldLength.Distribution {
	case ycsb.Uniform, ycsb.Zipfian:
		least = w.FieldLength.Min
	case ycsb.Histogram:
		least = w.FieldLength.Block
	}
	if least < minAuditedValue {
		hint := fmt.Sprintf("set fieldlength, or minfieldlength, to %d or more", minAuditedValue)
		c.problems = append(c.problems, strict.Problems{c.e.problem("audit", hint, "values of %d bytes have no room for a version", least)}...)
	}
}
