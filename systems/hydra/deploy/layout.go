package deploy

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

const (
	FirstCloud  = "aws"
	SecondCloud = "gcp"
)

const (
	// firstNet and nets are the range of second bytes of 127.x.0.0/16 to search for a free net.
	firstNet = 77
	nets     = 40
	// Third bytes of addresses; clouds count from 1.
	thirdWitness = 100
	thirdNames   = 200
	edgeByte     = 100
)

// LayoutOnLoopback places two clouds with members, a witness and a DNS server on free loopback addresses, below dir.
func LayoutOnLoopback(dir string, members int) (Layout, error) {
	for n := firstNet; n < firstNet+nets; n++ {
		if !isNetFree(n) {
			continue
		}
		var l Layout
		var errs []error
		at := func(name, site string, third, fourth int) host.Host {
			h, err := host.NewLoopback(name, site, fmt.Sprintf("127.%d.%d.%d", n, third, fourth), filepath.Join(dir, name))
			errs = append(errs, err)
			return h
		}
		for i, name := range []string{FirstCloud, SecondCloud} {
			c := CloudNodes{Name: name, Edge: at(name+"-edge", name, i+1, edgeByte)}
			for k := range members {
				c.Members = append(c.Members, at(fmt.Sprintf("%s-%d", name, k+1), name, i+1, k+1))
			}
			l.Clouds = append(l.Clouds, c)
		}
		l.Witness = at(witnessCloud, witnessCloud, thirdWitness, 1)
		l.DNS = at("names", "names", thirdNames, 1)
		return l, errors.Join(errs...)
	}
	return Layout{}, advice.With(fmt.Errorf("%w: all of 127.%d to 127.%d are in use", ErrLayout, firstNet, firstNet+nets-1),
		"stop other deployments")
}

func isNetFree(n int) bool {
	for _, port := range []int{PortAPI, PortPeer} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.%d.1.1:%d", n, port))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	p, err := net.ListenPacket("udp", fmt.Sprintf("127.%d.%d.1:%d", n, thirdNames, PortDNS))
	return err == nil && p.Close() == nil
}

// cloudNodes is the minimum number of nodes of a cloud: two members and an edge.
const cloudNodes = 3

// LayoutOnHosts places a deployment on the nodes of a lab. Every site with three nodes or more is a
// cloud: its last node is the edge, the others are members. In the first other site, the first node is
// the witness and the last node the DNS server.
func LayoutOnHosts(hosts []host.Host) (Layout, error) {
	var order []string
	sites := map[string][]host.Host{}
	for _, h := range hosts {
		if _, seen := sites[h.Site()]; !seen {
			order = append(order, h.Site())
		}
		sites[h.Site()] = append(sites[h.Site()], h)
	}
	var layout Layout
	for _, name := range order {
		nodes := sites[name]
		switch {
		case len(nodes) >= cloudNodes:
			last := len(nodes) - 1
			layout.Clouds = append(layout.Clouds, CloudNodes{Name: name, Members: nodes[:last], Edge: nodes[last]})
		case layout.Witness == nil:
			layout.Witness, layout.DNS = nodes[0], nodes[len(nodes)-1]
		}
	}
	if len(layout.Clouds) == 0 {
		return layout, advice.With(fmt.Errorf("%w: no site of the lab has %d nodes", ErrLayout, cloudNodes), "see topologies/two-clouds.yaml")
	}
	return layout, nil
}
