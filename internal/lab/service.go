package lab

import (
	"context"
	"slices"

	"skerry/internal/lab/service"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// members are the nodes that carry the database.
func (c *Config) members() []string {
	if c.Members != nil {
		return c.Members
	}
	var names []string
	for _, n := range c.Topology.Nodes {
		if n.Role != topology.Client {
			names = append(names, n.Name)
		}
	}
	return names
}

// startService makes the service that the topology asks for.
func (l *Lab) startService(ctx context.Context, c Config) (err error) {
	s := c.Topology.Service
	if !s.Enabled() {
		return nil
	}
	c.Progress("service", 0, 1)
	members := c.members()
	var places []service.Place
	for i, n := range c.Topology.Nodes {
		places = append(places, service.Place{Name: n.Name, Addr: address(i), Member: slices.Contains(members, n.Name)})
	}
	plan, err := service.New(s, places, c.Ports, func(node string, port int) bool {
		taken, err := l.part.Listening(ctx, node, port)
		return err == nil && taken // what cannot be told shows when it is published
	})
	if err != nil {
		return err
	}
	l.state.Service = &plan
	if err := l.part.Name(ctx, l.names()); err != nil {
		return err
	}
	if err := l.contain(); err != nil {
		return err
	}
	l.service, err = service.Start(ctx, service.Config{
		Plan: plan, Hosts: l.Hosts(), On: l.part, Balancer: c.Balancer, Log: l.log,
	})
	if err != nil {
		return err
	}
	c.Progress("service", 1, 1)
	return nil
}

// contain makes the hosts of the members that the service has others reach elsewhere than
// on their nodes.
func (l *Lab) contain() error {
	l.containers = map[string]host.Host{}
	if l.state.Service == nil {
		return nil
	}
	for _, n := range l.state.Service.Nodes {
		m := n.Member
		if m == nil {
			continue
		}
		h, err := l.part.Contain(machine.Container{
			Node: n.Name, Listen: m.Listen, Addr: m.Addr, Ports: m.Ports, Own: l.state.Service.Contained(),
		})
		if err != nil {
			return err
		}
		l.containers[n.Name] = h
	}
	return nil
}

// Member returns where the database runs on a node: in its container, where the lab has a
// service, else on the node itself. ErrNoNode when there is none of that name.
func (l *Lab) Member(name string) (host.Host, error) {
	if c := l.containers[name]; c != nil {
		return c, nil
	}
	return l.Host(name)
}

// Service tells how clients reach the database; ok is false where there is no service.
func (l *Lab) Service() (plan service.Plan, ok bool) {
	if l.state.Service == nil {
		return plan, false
	}
	return *l.state.Service, true
}

// ServiceRunning is the service at work, nil without one and in processes that did not
// start it.
func (l *Lab) ServiceRunning() *service.Running { return l.service }

func (l *Lab) closeService() error {
	if l.service == nil {
		return nil
	}
	running := l.service
	l.service = nil
	return running.Close()
}
