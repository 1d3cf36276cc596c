package experiment

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/load/ycsb"
)

// Check holds every trial of an experiment against what the databases can do. The error is
// strict.Problems.
func Check(e Experiment, databases map[string]database.Database) error {
	var problems strict.Problems
	for _, c := range e.Plan() {
		if c.Repetition == 1 {
			problems = append(problems, c.Experiment.checkDatabase(databases)...)
		}
	}
	return problems.Sorted().AsError()
}

func (e Experiment) checkDatabase(databases map[string]database.Database) (ps strict.Problems) {
	fail := func(path, hint, format string, args ...any) {
		ps = append(ps, e.problem(path, hint, format, args...))
	}
	name := e.Database.Label()
	db, err := e.Choose(databases)
	switch described := (strict.Problems)(nil); {
	case errors.As(err, &described): // mistakes in the file that describes it
		return described
	case errors.Is(err, database.ErrUnknown):
		fail("database.name", meant(name, slices.Sorted(maps.Keys(databases))), "there is no database %q", name)
		return ps
	case err != nil:
		fail("database.exec", advice.Of(err), "%v", err)
		return ps
	}
	can, nodes := db.Capabilities(), len(e.DataNodes())
	if nodes < can.MinNodes {
		fail("database.count", "", "%s needs at least %d nodes, this is %d", name, can.MinNodes, nodes)
		return ps
	}
	for _, p := range e.Pools() {
		ps = append(ps, e.checkClient(p, database.ClientProperties(db), name)...)
		if p.Workload.onTree() && !can.Tree {
			fail(p.path+".name", "use one of YCSB's workloads", "%s is no directory tree, which the workload %s is on", name, p.Label())
		}
		if w, err := e.YCSB(p); err == nil && w.Uses(ycsb.Scan) && !can.Scan {
			fail(p.path+".name", "leave out workload e", "%s cannot scan, which the workload %s asks for", name, p.Label())
		}
	}
	if err := db.Check(nodes, e.Database.Options); err != nil {
		path := "database.options"
		for option := range e.Database.Options {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(option) + `\b`).MatchString(err.Error()) {
				path = "database.options." + option
			}
		}
		fail(path, "", "%v", err)
	}
	e.checkService(db, name, fail)
	event.CheckDatabase(e.Events, e.Stage(db), name, can, func(path, hint, format string, args ...any) {
		fail("events"+path, hint, format, args...)
	})
	return ps
}
