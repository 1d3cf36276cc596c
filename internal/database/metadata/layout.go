package metadata

import (
	"fmt"
	"slices"

	"skerry/internal/machine/host"
)

// server is one server of the service: a process, or a group of replicas.
type server struct {
	name  string // that of the node that it belongs to
	group bool   // of replicas, be it of one
	nodes []host.Host
}

// planServers are the servers that options make of nodes, that which has the root first.
func (o options) planServers(nodes []host.Host) ([]server, error) {
	if o.root != "" {
		at := slices.IndexFunc(nodes, func(h host.Host) bool { return h.Name() == o.root })
		if at < 0 {
			return nil, fmt.Errorf("%w: root %s is no data node", ErrOption, o.root)
		}
		nodes = append(slices.Clone(nodes[at:]), nodes[:at]...)
	}
	some := func(nodes []host.Host, most int) []host.Host {
		if most == 0 {
			return nodes
		}
		return nodes[:min(most, len(nodes))]
	}
	var servers []server
	switch o.servers {
	case serversOne:
		servers = []server{{nodes: some(nodes, o.replicas)}}
	case serversSite:
		var sites []string
		of := make(map[string][]host.Host)
		for _, h := range nodes {
			if of[h.Site()] == nil {
				sites = append(sites, h.Site())
			}
			of[h.Site()] = append(of[h.Site()], h)
		}
		for _, site := range sites {
			servers = append(servers, server{nodes: some(of[site], o.replicas)})
		}
	case serversNode:
		for i := range nodes {
			around := append(slices.Clone(nodes[i:]), nodes[:i]...)
			servers = append(servers, server{nodes: around[:max(1, o.replicas)]})
		}
	}
	for i := range servers {
		s := &servers[i]
		s.name, s.group = s.nodes[0].Name(), len(s.nodes) > 1 || o.resizable()
	}
	return servers, nil
}

// serverFor is the server that has a node's areas: that which belongs to it, else the one
// of its site, else the first.
func serverFor(servers []server, node host.Host) server {
	for _, s := range servers {
		if s.name == node.Name() {
			return s
		}
	}
	for _, s := range servers {
		if s.nodes[0].Site() == node.Site() {
			return s
		}
	}
	return servers[0]
}
