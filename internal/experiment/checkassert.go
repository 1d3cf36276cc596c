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

// checkAssertions parses every line, and checks that the experiment measures its metric.
func (c *checker) checkAssertions() {
	for i, text := range c.e.Assert {
		path := fmt.Sprintf("assert[%d]", i)
		l, err := metric.ParseAssertion(text)
		var s *metric.SyntaxError
		switch {
		case errors.As(err, &s):
			p := c.e.problem(path, s.Hint, "%s", s.Message)
			p.Pos, p.Err = p.Pos.Advance(s.Offset), err
			c.problems = append(c.problems, p)
		case l.Metric.Audit && !c.e.Audit.Enabled:
			c.fail(path, "set audit: true", "metric %s requires an audit", l.Name)
		case l.Metric.Pool != "" && len(c.e.Workloads) == 0:
			p := c.e.problem(path, "", "%v", metric.UnknownError(l.Name))
			p.Pos = p.Pos.Advance(strings.Index(text, l.Name))
			c.problems = append(c.problems, p)
		case l.Metric.Pool != "" && !c.hasPool(l.Metric.Pool):
			c.fail(path, suggestName(l.Metric.Pool, c.e.poolNames()), "unknown workload %q", l.Metric.Pool)
		case l.Metric.Operation != "" && l.Metric.Pool == "" && len(c.e.Workloads) > 0:
			c.fail(path, "write "+c.e.Workloads[0].Name+"."+l.Name, "metric %s is ambiguous: there are several workloads", l.Name)
		case l.Metric.Operation != "" && !c.hasOperation(l.Metric.Pool, l.Metric.Operation):
			c.fail(path, "remove it, or change the workload", "the workload has no operation %s, so no metric %s", l.Metric.Operation, l.Name)
		case l.Metric.Event != "" && !c.hasEvent(l.Metric.Event):
			hint := "the experiment has no events"
			if names := c.eventNames(); len(names) > 0 {
				hint = "use one of " + strings.Join(names, ", ")
			}
			if near := suggest.Nearest(l.Metric.Event, c.eventNames()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.fail(path, hint, "unknown event %q", l.Metric.Event)
		}
	}
}

// eventNames are the names and kinds of events, which assertions may use.
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

func (c *checker) hasPool(pool string) bool { return slices.Contains(c.e.poolNames(), pool) }

// hasOperation reports whether a pool's workload has an operation.
func (c *checker) hasOperation(pool, operation string) bool {
	pools := c.e.Pools()
	i := slices.IndexFunc(pools, func(p Pool) bool { return p.Name == pool })
	if i < 0 {
		return true // reported elsewhere
	}
	t, badTree := pools[i].Workload.Tree()
	w, err := c.e.YCSBWorkload(pools[i])
	if err != nil || badTree != nil {
		return true // reported elsewhere
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

// operationName converts an operation's name in results to its name in assertions.
func operationName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// minAuditedValue is the shortest value, in bytes, that has room for a version.
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
		if w, err := c.e.YCSBWorkload(p); err == nil { // an error is reported elsewhere
			c.checkVersions(w)
		}
	}
}

// checkVersions checks that the values of a workload have room for versions, and no other content.
func (c *checker) checkVersions(w ycsb.Workload) {
	if w.DataIntegrity {
		c.fail("audit", "remove dataintegrity", "dataintegrity derives values from keys, an audit writes versions into them")
	}
	if w.Mix.Delete > 0 {
		c.fail("audit", "remove deleteproportion", "an audit does not support deletes")
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
		c.problems = append(c.problems, strict.Problems{c.e.problem("audit", hint, "values of %d bytes are too short for a version", least)}...)
	}
}
