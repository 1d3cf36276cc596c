package metadata

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	vocab "skerry/systems/metadata"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/protocol"
)

const (
	// adminTimeout bounds one question to one replica.
	adminTimeout = daemon.QueryTimeout
	// stopGrace is what a replica gets between SIGTERM and SIGKILL.
	stopGrace = 10 * time.Second
)

// replica is a process: one replica of a server, or a whole server.
type replica struct {
	host   host.Host
	server string
	name   string // in its group; "" where there is none
	slot   int    // how many replicas the node has before it
	addr   string
	peer   string
	// admin asks it for the whole tree, own for its server's, both from its own node.
	admin, own *client.Client

	daemon.Seat
}

func (r *replica) Name() string { return r.host.Name() }

func (c *cluster) newReplica(s server, h host.Host, slot int) *replica {
	r := &replica{
		host: h, server: s.name, slot: slot,
		addr: net.JoinHostPort(h.Addr(), strconv.Itoa(c.options.port+slot)),
		peer: net.JoinHostPort(h.Addr(), strconv.Itoa(c.options.peerPort+slot)),
	}
	if s.group {
		// Names are never used again, and a node may leave and join again.
		r.name = h.Name() + "." + strconv.Itoa(int(c.names.Add(1)))
	}
	r.admin, r.own = client.New(r.addr), client.New(r.addr)
	if len(c.layout) > 1 {
		r.own = client.NewOwn(r.addr)
	}
	for _, one := range []*client.Client{r.admin, r.own} {
		one.SetDialer(host.Dialer(h, adminTimeout))
	}
	return r
}

// label names a node's replica in processes and files.
func (r *replica) label() string {
	if r.slot == 0 {
		return Name
	}
	return Name + "-" + strconv.Itoa(r.slot)
}

func (r *replica) dir() string { return filepath.Join(r.host.Dir(), r.label()) }
func (r *replica) log() string { return filepath.Join(r.host.Dir(), r.label()+".log") }

func (c *cluster) startNew(ctx context.Context, r *replica, join bool) error {
	if err := files.Empty(ctx, r.host.Files(), r.dir()); err != nil {
		return fmt.Errorf("emptying the directory of metadata on %s: %w", r.host.Name(), err)
	}
	return c.startProcess(ctx, r, join)
}

func (c *cluster) startProcess(ctx context.Context, r *replica, join bool) error {
	args := []string{"serve", "--listen", r.addr, "--data", r.dir(), "--cluster", r.server, "--insecure"}
	ports := []int{c.options.port + r.slot}
	if r.name != "" {
		args = append(args, "--name", r.name)
		ports = append(ports, c.options.peerPort+r.slot)
		if join {
			args = append(args, "--join", "--member", r.name+"="+r.peer)
		}
		for _, other := range c.All() {
			if !join && other.server == r.server {
				args = append(args, "--member", other.name+"="+other.peer)
			}
		}
	}
	if len(c.layout) > 1 {
		args = append(args, "--root", c.layout[0].name)
		for _, s := range c.layout {
			args = append(args, "--server", s.name+"="+c.serverAddresses(s.name))
		}
		args = append(args, c.options.balancerArguments()...)
	}
	d, err := c.Servers.Start(ctx, r.host, daemon.Spec{
		Command: host.Command{
			Name: r.label(), Path: c.Env.Installation.Programs[program], Env: c.Env.Installation.Env,
			Dir: r.dir(), Log: r.log(), Args: args,
		},
		Ports: ports, Grace: stopGrace, Joining: join,
	})
	if err != nil {
		return err
	}
	r.SetServer(d)
	return nil
}

func (r *replica) queryStatus(ctx context.Context) (protocol.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	s, err := r.admin.Status(ctx)
	if err != nil {
		return s, fmt.Errorf("querying metadata on %s: %w", r.host.Name(), err)
	}
	return s, nil
}

func (r *replica) checkServing(ctx context.Context) error {
	s, err := r.queryStatus(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", database.ErrNotReady, err)
	case s.Group != nil && s.Group.Leader == 0:
		return fmt.Errorf("%w: %s knows of no leader", database.ErrNotReady, r.host.Name())
	case s.Journal.Broken != "":
		return fmt.Errorf("%w: %s: %s", database.ErrNotReady, r.host.Name(), s.Journal.Broken)
	}
	if _, err := runCommand(ctx, r.own, vocab.Command{Op: vocab.Stat, Path: "/"}); err != nil {
		return fmt.Errorf("%w: metadata on %s: %w", database.ErrNotReady, r.host.Name(), err)
	}
	return nil
}

func runCommand(ctx context.Context, by *client.Client, c vocab.Command) (vocab.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	r := by.DoOne(ctx, c)
	return r, r.Err
}

func (r *replica) closeClients() {
	r.admin.Close()
	r.own.Close()
}
