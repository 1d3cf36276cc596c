package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/host"
	"skerry/internal/netns"
	"skerry/internal/service"
	"skerry/internal/topology"
	"skerry/internal/volume"
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

// containerSpace is the path of the namespace of a node's container. No node's name has a +.
func (p place) containerSpace(node string) string { return p.namespace(node + "+container") }

// startService makes the service that the topology asks for.
func (l *Lab) startService(ctx context.Context, c Config) (err error) {
	s := c.Topology.Service
	if !s.Enabled() {
		return nil
	}
	c.Progress("service", 0, 1)
	members := c.members()
	var places []service.Place
	for _, n := range l.state.Nodes {
		addr, err := netip.ParseAddr(n.Addr)
		if err != nil {
			return fmt.Errorf("address of %s: %w", n.Name, err)
		}
		places = append(places, service.Place{Name: n.Name, Addr: addr, Member: slices.Contains(members, n.Name)})
	}
	plan, err := service.New(s, places, c.Ports, l.listening)
	if err != nil {
		return err
	}
	l.state.Service = &plan
	if err := l.writeHosts(); err != nil {
		return err
	}
	l.contain()
	l.service, err = service.Start(ctx, service.Config{
		Plan: plan, Hosts: l.Hosts(), Space: l.place.containerSpace, Settings: func() error { return applySettings(settings) },
		Balancer: c.Balancer, Log: l.log,
	})
	if err != nil {
		return err
	}
	c.Progress("service", 1, 1)
	return nil
}

// listening tells whether a program listens on a port of a node's address.
func (l *Lab) listening(node string, port int) bool {
	n := l.byName[node]
	err := netns.Do(n.Netns(), func() error {
		listener, err := net.Listen("tcp4", net.JoinHostPort(n.Addr(), strconv.Itoa(port)))
		if err != nil {
			return err
		}
		return listener.Close()
	})
	return errors.Is(err, unix.EADDRINUSE)
}

// contain makes the hosts of the members that the service has others reach elsewhere than
// on their nodes.
func (l *Lab) contain() {
	l.containers = map[string]*host.Container{}
	if l.state.Service == nil {
		return
	}
	for _, n := range l.state.Service.Nodes {
		m := n.Member
		if m == nil {
			continue
		}
		node := l.byName[n.Name]
		space := node.Netns()
		if l.state.Service.Contained() {
			space = l.place.containerSpace(n.Name)
		}
		l.containers[n.Name] = node.Container(host.Space{Netns: space, Listen: m.Listen.String(), Addr: m.Addr.String(), Ports: m.Ports})
	}
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

// writeHosts writes the file of the nodes' names, in place: processes have it mounted.
func (l *Lab) writeHosts() error {
	text := hosts(l.state.Nodes)
	if l.state.Service != nil {
		names := l.state.Service.Names()
		var lines []string
		for name, addr := range names {
			lines = append(lines, addr.String()+" "+name+"\n")
		}
		slices.Sort(lines)
		text = append(text, strings.Join(lines, "")...)
	}
	if err := os.WriteFile(l.place.file(hostsFile), text, 0o644); err != nil {
		return fmt.Errorf("write names of nodes: %w", err)
	}
	return nil
}

// volumesDir holds what volumes consist of. No node's name begins with a dot.
const volumesDir = ".volumes"

// mountVolumes puts the directories of members on volumes.
func (l *Lab) mountVolumes(c Config) error {
	v := c.Topology.Volume
	if !v.Enabled() {
		return nil
	}
	// Processes of other labs have copies of the machine's mounts. Below a shared one, what
	// is unmounted here goes there too, and with it the loop device.
	if err := share(l.state.Data); err != nil {
		return fmt.Errorf("mount place of volumes: %w", err)
	}
	members := c.members()
	for _, n := range l.state.Nodes {
		if !slices.Contains(members, n.Name) {
			continue
		}
		if err := volume.Mount(v, n.Dir, filepath.Join(l.state.Data, volumesDir, n.Name)); err != nil {
			return err
		}
	}
	return nil
}
