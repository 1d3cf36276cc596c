package experiment

import (
	"errors"
	"maps"
	"net/netip"
	"regexp"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/lab/service"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// CheckCapabilities holds every trial of an experiment against what the databases can do. The error is
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
	case errors.As(err, &described): // mistakes in the file that describes it
		return described
	case errors.Is(err, database.ErrUnknown):
		fail("database.name", suggestName(name, slices.Sorted(maps.Keys(databases))), "there is no database %q", name)
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
		if p.Workload.isTree() && !can.Tree {
			fail(p.path+".name", "use one of YCSB's workloads", "%s is no directory tree, which the workload %s is on", name, p.Label())
		}
		if w, err := e.YCSBWorkload(p); err == nil && w.Uses(ycsb.Scan) && !can.Scan {
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
	event.CheckDatabase(e.Events, e.EventLayout(db), name, can, func(path, hint, format string, args ...any) {
		fail("events"+path, hint, format, args...)
	})
	return ps
}

// Members are the nodes that the database is on at some time, in the topology's order.
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

// Ports are those that members of the database listen on, where it can say so.
func (e Experiment) Ports(db database.Database) (database.Ports, error) {
	a, ok := db.(database.Published)
	if !ok {
		return database.Ports{}, nil
	}
	return a.Ports(len(e.DataNodes()), e.Database.Options)
}

// checkService holds the service networking and the volumes against what the database can
// do, and finds ports that conflict before anything starts.
func (e Experiment) checkService(db database.Database, name string, fail func(path, hint, format string, args ...any)) {
	cloud, err := e.Cloud()
	if err != nil {
		return
	}
	if cloud.Volume.Enabled() && len(event.DiskSizes(e.Events, e.EventLayout(db))) > 0 {
		fail("topology.volumes", "leave out the volumes, or the event", "an event fills the disks of nodes, which are then in memory and on no volume")
	}
	s := cloud.Service
	if !s.Enabled() {
		return
	}
	_, announced := db.(database.Published)
	if direct := s.Kind == topology.ServiceIP && !s.Own(); !announced && !direct {
		fail("topology.service", "with {kind: service-ip, members: shared} members are known by their containers' addresses",
			"members of %s cannot be known by another address than they listen at, which service: %s (members: %s) asks for", name, s.Kind, s.Members)
		return
	}
	ports, err := e.Ports(db)
	if err != nil {
		return // Check has told
	}
	members := e.Members(db)
	places := make([]service.NodeSpec, len(cloud.Nodes))
	for i, n := range cloud.Nodes {
		// Any addresses do: they are all different.
		places[i] = service.NodeSpec{Name: n.Name, Addr: netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)}), Member: slices.Contains(members, n.Name)}
	}
	plan, err := service.NewPlan(s, places, ports.All, nil)
	if err != nil {
		fail("topology.service", advice.Of(err), "%v", err)
		return
	}
	if ports.Fixed && plan.Remaps() {
		fail("topology.service", "take host-port with static ports, service-ip, or members: shared",
			"members of %s tell each other the ports that they listen at, and service: %s publishes them as others", name, s.Kind)
	}
}
