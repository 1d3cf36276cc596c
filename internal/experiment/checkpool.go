package experiment

import (
	"fmt"
	"reflect"
	"slices"

	"skerry/internal/load/ycsb"
	"skerry/internal/record/metric"
)

// workloads checks what every pool asks for, and what pools may not ask for beside each other.
func (c *checker) workloads() {
	e := c.e
	several := c.e.given("workloads")
	switch {
	case several && len(e.Workloads) == 0:
		c.fail("workloads", "give at least one, or workload", "no workload is given")
		return
	case several:
		e.Workload = Workload{}
	}
	pools := e.Pools()
	for i := range pools {
		if several {
			c.poolName(i)
		}
		w := &e.Workload
		if several {
			w = &e.Workloads[i].Workload
		}
		c.workload(pools[i].path, w)
	}
	if len(c.problems) == 0 && several {
		c.together(e.Pools())
	}
}

func (c *checker) poolName(i int) {
	name, path := c.e.Workloads[i].Name, fmt.Sprintf("workloads[%d].name", i)
	if metric.Reserved(name) {
		c.fail(path, "call it otherwise", "%q is the name of a figure", name)
	}
	if slices.ContainsFunc(c.e.Workloads[:i], func(p Pool) bool { return p.Name == name }) {
		c.fail(path, "call it otherwise", "two workloads are called %q", name)
	}
}

// together refuses what pools that share a table would spoil for each other.
func (c *checker) together(pools []Pool) {
	if len(pools) == 1 {
		return
	}
	first, err := c.e.YCSB(pools[0])
	if err != nil {
		return // told elsewhere
	}
	inserts := ""
	var writers []span
	for _, p := range pools {
		w, err := c.e.YCSB(p)
		if err != nil {
			return
		}
		if p.Workload.onTree() {
			c.fail(p.path+".name", "use YCSB's workloads, or one workload alone", "a workload on a directory tree cannot stand beside others: each would use the same names")
			continue
		}
		if w.RecordCount != first.RecordCount {
			c.fail(p.path+".records", fmt.Sprintf("write %d, as %s has it", first.RecordCount, pools[0].Name), "all workloads share one table: %d records are not %d", w.RecordCount, first.RecordCount)
		}
		if !sameTable(w, first) {
			c.fail(p.path, fmt.Sprintf("give it the properties of %s", pools[0].Name), "all workloads share one table, and the records of this one are otherwise (table, fields, lengths, keys)")
		}
		if w.Mix.Insert > 0 && inserts != "" {
			c.fail(p.path, "let one workload do all inserts", "%s inserts too, and both would insert the same keys", inserts)
		}
		if w.Mix.Insert > 0 {
			inserts = p.Name
			if end := w.InsertStart + w.InsertCount; end < w.RecordCount {
				c.fail(p.path, "leave insertcount out", "it would insert records that are there: those from %d on", end)
			}
		}
		if !c.e.writes(p) {
			continue
		}
		mine := span{p.Name, w.InsertStart, w.InsertStart + w.InsertCount}
		if d := w.Requests.Distribution; d == ycsb.Latest || d == ycsb.Exponential {
			mine.from, mine.to = 0, w.RecordCount // they count from the newest record of the whole table
		}
		if i := slices.IndexFunc(writers, mine.overlaps); i >= 0 && c.e.Audit.Enabled {
			c.fail("audit", "give each records of its own (properties insertstart and insertcount), let one workload do all writes, or leave audit out",
				"%s and %s both write the same records: whose version one has would not be known", writers[i].pool, p.Name)
		}
		writers = append(writers, mine)
	}
	if c.e.Audit.Enabled && len(writers) == 0 {
		c.fail("audit", "leave audit out", "no workload writes")
	}
}

// span are the records that a pool works on, the last one not among them.
type span struct {
	pool     string
	from, to int64
}

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }

// sameTable tells whether two workloads describe the same records.
func sameTable(a, b ycsb.Workload) bool {
	return a.Table == b.Table && a.Fields == b.Fields && a.FieldPrefix == b.FieldPrefix && reflect.DeepEqual(a.FieldLength, b.FieldLength) &&
		a.OrderedKeys == b.OrderedKeys && a.ZeroPadding == b.ZeroPadding && a.DataIntegrity == b.DataIntegrity
}
