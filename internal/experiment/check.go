package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/topology"
)

// minEvery is the shortest interval between changes of links: changing all of azure8 takes some milliseconds.
const minEvery = unit.Duration(10 * time.Millisecond)

// check completes a decoded experiment, and returns the problems that involve more than one field.
func (e *Experiment) check() strict.Problems {
	c := &checker{e: e}
	c.database()
	c.adoptFiles()
	c.checkStop()
	c.checkWorkloads()
	if len(c.problems) == 0 { // both depend on the workload
		c.checkAudit()
		c.checkAssertions()
	}
	if c.buildCloud(); len(c.problems) == 0 {
		c.checkMachines()
		c.checkDrift()
		c.checkEvents()
		c.checkReuse()
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

func (c *checker) checkStop() {
	s := &c.e.Stop
	if c.e.isSet("stop.time") && s.Time == 0 {
		c.fail("stop.time", "remove it for no limit", "measurement time must be positive")
	}
	if s.Operations == 0 && s.Time == 0 {
		s.Time = defaultTime
	}
	if s.Confidence >= 1 {
		c.fail("stop.confidence", "write 5%", "confidence must be below 100%%")
	}
	if s.Time > 0 && s.MinTime > s.Time {
		if s.Confidence > 0 && c.e.isSet("stop.min_time") && !c.e.origin.fast {
			c.fail("stop.min_time", "make it shorter than stop.time",
				"%v is not before the end of the trial (stop.time), so confidence cannot end it", s.MinTime)
		}
		s.MinTime = s.Time
	}
}

// checkDrift checks the drift, and that it begins before the trial ends.
func (c *checker) checkDrift() {
	d := c.e.Drift
	if d == nil {
		return
	}
	if len(d.Steps) == 0 && d.Trace == "" && d.Mobility == nil {
		c.fail("drift", "give steps, trace or mobility", "drift is empty")
		return
	}
	if d.Every < minEvery {
		c.fail("drift.every", "write 100ms", "interval %v is below the minimum %v", d.Every, minEvery)
	}
	end := c.e.Stop.Time
	for i, s := range d.Steps {
		if end > 0 && s.At >= end {
			c.fail(fmt.Sprintf("drift.steps[%d].at", i), "make the trial longer or the step earlier",
				"step at %v is after the end of the trial (stop.time is %v)", s.At, end)
		}
	}
	if _, err := c.e.LinkProfiles(c.e.origin.cloud); err != nil {
		c.problems = append(c.problems, asProblems(err, strict.Pos{})...)
		return
	}
	c.checkTraceTimes()
}

// database splits NAME@SERIES and checks that a database is given. Its abilities are checked by Check.
func (c *checker) database() {
	d := &c.e.Database
	if d.Label() == "" {
		c.fail("database", "give name, or exec: FILE", "no database is given")
	}
	name, series, ok := strings.Cut(d.Name, "@")
	switch {
	case !ok:
	case series == "":
		c.fail("database.name", "write redis@7.0, or leave @ out", "%s: no series after @", d.Name)
	case d.Version != "" && d.Version != series:
		c.fail("database.name", "give the version once", "%s has version %s, too", d.Name, d.Version)
	default:
		d.Name, d.Version = name, series
	}
}

// localSite is the site of the client of a cluster that Skerry did not start.
const localSite = "here"

// emulated are the settings of an emulated cloud, which a cluster that Skerry did not start does not have.
var emulated = []string{
	"topology", "client", "scale", "setup_scale", "machines", "place", "between", "links", "engine", "drift", "cluster_warmup",
}

// checkCluster checks an experiment on a cluster that Skerry did not start. Its cloud is the client alone.
func (c *checker) checkCluster() {
	e := c.e
	for path, err := range e.Database.Cluster.Check() {
		c.fail(joinPath("database.cluster", path), "", "%v", err)
	}
	for _, path := range emulated {
		if e.isSet(path) {
			hint := "remove it, or remove database.cluster"
			if path == "machines" {
				hint = "remove it; to run the clients on another machine: skerry run FILE --on machines.yaml"
			}
			c.fail(path, hint,
				"the cluster, its network and the client's machine are not emulated: %s has no effect", path)
		}
	}
	if e.Parallel > 1 {
		c.fail("parallel", "remove it", "trials on one cluster would disturb each other")
	}
	e.Parallel = 1
	for i, p := range e.Workloads {
		if p.Client != nil {
			c.fail(e.Pools()[i].path+".client", "remove it; to run all clients on another machine: skerry run FILE --on machines.yaml",
				"all clients run on one machine")
		}
	}
	e.origin.cloud = topology.Topology{
		Name:  "cluster",
		Sites: []topology.Site{{Name: localSite}},
		Nodes: []topology.Node{{Name: topology.ClientName, Site: localSite, Role: topology.Client}},
	}
}

// checkAccess checks how clients log in to a cluster that Skerry did not start. Its problems do not quote the file, which
// may contain a password.
func (e Experiment) checkAccess(db database.Database) (ps strict.Problems) {
	own, ok := db.(*external.Database)
	if !ok {
		return nil
	}
	refuse := func(path string, err error) {
		p := e.problem(path, advice.Of(err), "%v", err)
		_, name, _ := strings.Cut(path, ".properties.")
		p.Pos = p.Pos.Find(name).WithoutText()
		ps = append(ps, p)
	}
	for key, err := range own.CheckAccess() {
		refuse(joinPath("database.cluster", key), err)
	}
	for _, p := range e.Pools() {
		for name, value := range p.Workload.Properties {
			if err := external.RefusePassword(name, value); err != nil {
				refuse(p.path+".properties."+name, err)
			}
		}
	}
	return ps
}

// FirstCommand returns a command of the user that a trial of a valid file runs, the file of a custom database, or a
// secret of this machine that a trial uses; "" for none.
func (v Validation) FirstCommand() string {
	if !v.Valid {
		return ""
	}
	all := append(v.experiment.localCommands(), v.experiment.collect(func(x Experiment) []string {
		if x.Database.Cluster == nil {
			return []string{x.Database.Exec}
		}
		return []string{x.Database.Exec, x.Database.Cluster.Secret()}
	})...)
	for _, line := range all {
		if line != "" {
			return line
		}
	}
	return ""
}

// NeedsLab reports whether any trial runs in a lab.
func (e Experiment) NeedsLab() bool {
	return slices.ContainsFunc(e.Plan(), func(c Cell) bool { return c.Experiment.Database.Cluster == nil })
}

func joinPath(base, key string) string {
	if key == "" {
		return base
	}
	return base + "." + key
}
