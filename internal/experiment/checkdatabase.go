package experiment

import (
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/topology"
)

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
			c.fail(path, "remove it, or remove database.cluster",
				"the cluster, its network and the client's machine are not emulated: %s has no effect", path)
		}
	}
	if e.Parallel > 1 {
		c.fail("parallel", "remove it", "trials on one cluster would disturb each other")
	}
	e.Parallel = 1
	for i, p := range e.Workloads {
		if p.Client != nil {
			c.fail(e.Pools()[i].path+".client", "remove it", "all clients run on this machine")
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

// FirstCommand returns a command of the user that a trial of a valid file runs, or a secret of this machine that it uses,
// "" for none: those of a cluster that Skerry did not start, or the file of a custom database.
func (v Validation) FirstCommand() string {
	for _, c := range v.Plan {
		d := c.Experiment.Database
		if d.Exec != "" {
			return "exec: " + d.Exec
		}
		if d.Cluster == nil {
			continue
		}
		if used := append(d.Cluster.Commands(), d.Cluster.Secret()); used[0] != "" {
			return used[0]
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
