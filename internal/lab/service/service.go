// Package service is the service networking of container orchestrators: how a client finds
// its way to the members of a database that run in containers, and what that way costs. The
// kinds are those of Truyen et al., "Evaluation of container orchestration systems for
// deploying and managing NoSQL database clusters" (IEEE CLOUD 2018):
//
//	none        a process with its node's address, as `docker run --net=host`
//	host-port   a container on a bridge of its node; the node's address and a port lead
//	            there by NAT, as `docker run -p`
//	node-port   a container on a network over all nodes; a port of every node's address
//	            leads to some member, as Swarm's routing mesh and Kubernetes' NodePort
//	service-ip  the same network; a virtual address leads to some member, chosen where the
//	            connection begins, as kube-proxy's ClusterIP and Swarm's VIP
//	central     one HAProxy in front of processes with their nodes' addresses
//
// A container is a network namespace beside that of its node. The network over all nodes is
// VXLAN: what it carries crosses the lab's links in UDP packets from node to node.
//
//	node n1 ─────────────────────────────┐        ┌───────────────── node n2
//	  container         10.77.0.1 (lo)   │        │
//	    eth0 10.112.0.1                  │  link  │
//	     │                               ╞════════╡
//	    svc0 ── vx0 ── VXLAN, UDP 4789 ──┘        └── vx0 ── svc0 ── container
//
// Choosing a member and translating addresses is the kernel's nftables, set over netlink.
//
// # Members and services
//
// A database that is a cluster names its members' addresses to clients, and clients connect
// to these. So every member has a service of its own, as in the study, which the database
// announces for it (members: own); and there is one that leads to all of them, which is all
// that clients are told of with members: shared. Of the latter a client that is redirected,
// such as Redis Cluster's, makes its first contact alone; for a database where any member
// serves any request it balances connections.
package service

import (
	"errors"

	"skerry/internal/topology"
)

// Sentinel errors.
var (
	// ErrPort says that a port cannot be published.
	ErrPort = errors.New("port cannot be published")
	// ErrTooMany says that there are more nodes than addresses.
	ErrTooMany = errors.New("too many nodes for the service's network")
	// ErrBalancer says that the balancer of central does not work.
	ErrBalancer = errors.New("the balancer failed")
)

// Domain is that of the services' names.
const Domain = "skerry.internal"

// FullName is what a service is called in the network.
func FullName(s topology.Service) string { return s.Name + "." + Domain }
