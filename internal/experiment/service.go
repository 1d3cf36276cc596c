package experiment

import (
	"net/netip"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/lab/service"
	"skerry/internal/topology"
)

// Members are the nodes that the database is on at some time, in the topology's order.
func (e Experiment) Members(db database.Database) []string {
	if e.origin == nil {
		return nil
	}
	known := slices.Concat(e.DataNodes(), event.JoiningNodes(e.Events, e.Stage(db)))
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
	if cloud.Volume.Enabled() && len(event.DiskSizes(e.Events, e.Stage(db))) > 0 {
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
	places := make([]service.Place, len(cloud.Nodes))
	for i, n := range cloud.Nodes {
		// Any addresses do: they are all different.
		places[i] = service.Place{Name: n.Name, Addr: netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)}), Member: slices.Contains(members, n.Name)}
	}
	plan, err := service.New(s, places, ports.All, nil)
	if err != nil {
		fail("topology.service", advice.Of(err), "%v", err)
		return
	}
	if ports.Fixed && plan.Remaps() {
		fail("topology.service", "take host-port with static ports, service-ip, or members: shared",
			"members of %s tell each other the ports that they listen at, and service: %s publishes them as others", name, s.Kind)
	}
}
