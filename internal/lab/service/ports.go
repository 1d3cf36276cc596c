package service

import (
	"fmt"
	"slices"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

// allocator assigns public ports.
type allocator struct {
	plan  *Plan
	taken PortTaken
	next  int // of the range
}

// publishHostPorts publishes every member's ports on its node.
func (a *allocator) publishHostPorts() error {
	for _, n := range a.plan.Nodes {
		if n.Member == nil {
			continue
		}
		n.Member.Ports = map[int]int{}
		a.next = a.plan.Service.Low
		used := map[int]int{} // by the published port, that of the container
		for _, inside := range a.plan.Ports {
			outside, given := a.plan.Service.Publish[inside]
			var err error
			switch {
			case given:
			case a.plan.Service.Auto:
				outside, err = a.nextFree([]Node{n})
			default:
				outside = inside
			}
			if err == nil {
				err = a.publish([]Node{n}, outside, inside, used)
			}
			if err != nil {
				return err
			}
			n.Member.Ports[inside] = outside
		}
	}
	return nil
}

// publishFronts publishes the ports of the shared service on nodes, and those of each member if members have their own
// services.
func (a *allocator) publishFronts(on []Node) error {
	p := a.plan
	p.Shared = map[int]int{}
	used := map[int]int{}
	for _, inside := range p.Ports {
		outside, given := p.Service.Publish[inside]
		if given {
			if err := a.publish(on, outside, inside, used); err != nil {
				return err
			}
			p.Shared[inside] = outside
		}
	}
	next := func(inside int) (int, error) {
		for {
			outside, err := a.nextFree(on)
			if err != nil {
				return 0, err
			}
			if _, twice := used[outside]; !twice {
				used[outside] = inside
				return outside, nil
			}
		}
	}
	var err error
	for _, inside := range p.Ports {
		if _, given := p.Shared[inside]; !given {
			if p.Shared[inside], err = next(inside); err != nil {
				return err
			}
		}
	}
	if p.Service.Members != topology.Own {
		return nil
	}
	for _, n := range p.Nodes {
		if n.Member == nil {
			continue
		}
		n.Member.Addr, n.Member.Ports = n.Addr, map[int]int{}
		if p.Service.Kind == topology.Central {
			n.Member.Addr = on[0].Addr
		}
		for _, inside := range p.Ports {
			if n.Member.Ports[inside], err = next(inside); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish reserves a public port for a port of the containers.
func (a *allocator) publish(on []Node, outside, inside int, used map[int]int) error {
	if other, twice := used[outside]; twice {
		return advice.With(fmt.Errorf("%w: %d is assigned to the containers' ports %d and %d", ErrPort, outside, other, inside),
			"publish one of them as another port, or use ports: auto")
	}
	for _, n := range on {
		if a.inUse(n, outside) {
			return advice.With(fmt.Errorf("%w: port %d of %s is in use", ErrPort, outside, n.Name),
				"publish %d as another port, or use ports: auto", inside)
		}
	}
	used[outside] = inside
	return nil
}

// nextFree is the next unused port of the range.
func (a *allocator) nextFree(on []Node) (int, error) {
	for ; a.next <= a.plan.Service.High; a.next++ {
		if !slices.ContainsFunc(on, func(n Node) bool { return a.inUse(n, a.next) }) {
			a.next++
			return a.next - 1, nil
		}
	}
	s := a.plan.Service
	return 0, advice.With(fmt.Errorf("%w: range %d-%d has too few free ports", ErrPort, s.Low, s.High), "widen service.range")
}

// inUse reports whether a port of a node is in use, by a program or by a member outside a container.
func (a *allocator) inUse(n Node, port int) bool {
	own := !a.plan.Contained() && n.Member != nil && slices.Contains(a.plan.Ports, port)
	return own || a.taken(n.Name, port)
}
