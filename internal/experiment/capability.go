package experiment

import (
	"errors"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/lab/service"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// CheckCapabilities compares every trial of an experiment with the abilities of its database. The error is
// strict.Problems.
func CheckCapabilities(e Experiment, databases map[string]database.Database) error {
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
	db, err := e.ResolveDatabase(databases)
	switch described := (strict.Problems)(nil); {
	case errors.As(err, &described): // mistakes in the description file
		return described
	case errors.Is(err, database.ErrUnknown):
		fail("database.name", suggestName(name, slices.Sorted(maps.Keys(databases))), "unknown database %q", name)
		return ps
	case err != nil:
		fail("database.exec", advice.Of(err), "%v", err)
		return ps
	}
	can, nodes := db.Capabilities(), len(e.DataNodes())
	if nodes < can.MinNodes {
		fail("database.count", "", "%s needs at least %d nodes, got %d", name, can.MinNodes, nodes)
		return ps
	}
	for _, p := range e.Pools() {
		ps = append(ps, e.checkClient(p, database.ClientProperties(db), name)...)
		if p.Workload.isTree() && !can.Tree {
			fail(p.path+".name", "use a workload of YCSB", "workload %[2]s needs a directory tree, %[1]s is none", name, p.Label())
		}
		if w, err := e.YCSBWorkload(p); err == nil && w.Uses(ycsb.Scan) && !can.Scan {
			fail(p.path+".name", "use a workload without scans, not e", "workload %[2]s scans, %[1]s cannot", name, p.Label())
		}
	}
	var described strict.Problems // keys that the description file lacks
	if err := db.Check(nodes, e.Database.Options); errors.As(err, &described) {
		ps = append(ps, described...)
	} else if err != nil {
		path := "database.options"
		for option := range e.Database.Options {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(option) + `\b`).MatchString(err.Error()) {
				path = "database.options." + option
			}
		}
		fail(path, "", "%v", err)
	}
	ps = append(ps, e.checkAccess(db)...)
	e.checkService(db, name, fail)
	event.CheckDatabase(e.Events, e.EventLayout(db), name, can, func(path, hint, format string, args ...any) {
		fail("events"+path, hint, format, args...)
	})
	return ps
}

// Installations maps the keys of the installations that a trial needs to their versions: that of the database, and the
// targets of upgrades.
func (e Experiment) Installations() map[string]string {
	needed := map[string]string{e.Database.Key(): e.Database.Version}
	for _, to := range event.UpgradeTargets(e.Events) {
		_, needed[to], _ = strings.Cut(to, "@")
	}
	return needed
}

// Members are the nodes that run the database at some time, in the topology's order.
func (e Experiment) Members(db database.Database) []string {
	if e.origin == nil {
		return nil
	}
	known := slices.Concat(e.DataNodes(), event.JoiningNodes(e.Events, e.EventLayout(db)))
	var members []string
	for _, n := range e.origin.cloud.Nodes {
		if slices.Contains(known, n.Name) {
			members = append(members, n.Name)
		}
	}
	return members
}

// Ports are the ports of the database's members, empty if the database does not announce them.
func (e Experiment) Ports(db database.Database) (database.Ports, error) {
	a, ok := db.(database.Published)
	if !ok {
		return database.Ports{}, nil
	}
	return a.Ports(len(e.DataNodes()), e.Database.Options)
}

// checkService compares service networking and volumes with the abilities of the database, and detects port conflicts.
func (e Experiment) checkService(db database.Database, name string, fail func(path, hint, format string, args ...any)) {
	cloud, err := e.Cloud()
	if err != nil {
		return
	}
	if cloud.Volume.Enabled() && len(event.DiskSizes(e.Events, e.EventLayout(db))) > 0 {
		fail("topology.volumes", "remove the volumes or the event", "an event fills disks of nodes: these disks are in memory, not on a volume")
	}
	s := cloud.Service
	if !s.Enabled() {
		return
	}
	_, announced := db.(database.Published)
	if direct := s.Kind == topology.ServiceIP && !s.PerMember(); !announced && !direct {
		fail("topology.service", "use {kind: service-ip, members: shared}, which exposes the containers' addresses",
			"members of %s cannot announce another address than they listen on, service: %s (members: %s) needs that", name, s.Kind, s.Members)
		return
	}
	ports, err := e.Ports(db)
	if err != nil {
		return // reported by CheckCapabilities
	}
	members := e.Members(db)
	places := make([]service.PlannedNode, len(cloud.Nodes))
	for i, n := range cloud.Nodes {
		// Any distinct addresses will do.
		places[i] = service.PlannedNode{Name: n.Name, Addr: netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)}),
			Member: slices.Contains(members, n.Name)}
	}
	plan, err := service.NewPlan(s, places, ports.All, nil)
	if err != nil {
		fail("topology.service", advice.Of(err), "%v", err)
		return
	}
	if ports.Fixed && plan.Remaps() {
		fail("topology.service", "use host-port with static ports, service-ip, or members: shared",
			"members of %s announce the ports they listen on, service: %s publishes other ports", name, s.Kind)
	}
}
