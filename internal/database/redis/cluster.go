package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

type cluster struct {
	*daemon.Cluster[*member]
	kind    kind
	options options
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
)

func (d *Redis) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	if o.rebalance, err = d.kind.resolveRebalance(o.rebalance, env.Installation.Version); err != nil {
		return nil, err
	}
	c := &cluster{kind: d.kind, Cluster: daemon.NewCluster[*member](d.kind.name, env), options: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("starting %d %s", len(c.Env.Nodes), c.kind.server)
	members := make([]*member, len(c.Env.Nodes))
	err := daemon.ForEach(ctx, c.Env.Nodes, func(ctx context.Context, i int, h host.Host) (err error) {
		members[i], err = c.startNew(ctx, h, false)
		return err
	})
	for _, m := range members {
		if m != nil {
			c.Add(m)
		}
	}
	if err != nil {
		return err
	}
	c.ReportProgress("forming the cluster")
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%s is not ready after %v", c.kind.name, readyTimeout))
	defer cancel()
	if err := c.formCluster(ctx); err != nil {
		return errors.Join(fmt.Errorf("forming the cluster: %w", err), c.Err())
	}
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) removeMember(ctx context.Context, m *member) error {
	c.Drop(m)
	return m.stop(ctx)
}

func (c *cluster) runningMembers() []*member {
	return c.Select(func(m *member) bool { return !m.Halted() })
}

func (c *cluster) haltedMembers() []*member {
	return c.Select((*member).Halted)
}

func (c *cluster) Properties() map[string]string {
	var hosts []string
	for _, m := range c.All() {
		hosts = append(hosts, m.addr)
	}
	p := map[string]string{PropHosts: strings.Join(c.Env.Contacts(c.options.port, hosts), ","), PropCluster: "true"}
	if c.options.wait > 0 {
		p[PropWait] = strconv.Itoa(c.options.wait)
	}
	return p
}

func (c *cluster) Stop(ctx context.Context) error {
	err := c.Servers.Stop(ctx)
	for _, m := range c.All() {
		c.Drop(m)
		err = errors.Join(err, m.admin.Close())
	}
	return err
}

const (
	// pollInterval is the time between two reads of a state that a change waits for.
	pollInterval = 20 * time.Millisecond
	// upTimeout bounds the start of a server, including the reading of its data.
	upTimeout = 60 * time.Second
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// adminTimeout bounds one request to one node.
	adminTimeout = 5 * time.Second
)

type member struct {
	host  host.Host
	addr  string // for clients and other members
	local string // for the member's own node
	dir   string
	// admin connects from the server's own node, so that its requests cross no link.
	admin *goredis.Client

	daemon.Seat
}

func (m *member) Name() string { return m.host.Name() }

func (c *cluster) newMember(h host.Host) *member {
	port := c.options.port
	m := &member{host: h, addr: database.PeerAddr(h, port), local: database.LocalAddr(h, port), dir: filepath.Join(h.Dir(), c.kind.name)}
	m.admin = goredis.NewClient(m.clientOptions(h, adminTimeout))
	return m
}

func (m *member) clientOptions(from host.Host, timeout time.Duration) *goredis.Options {
	addr := m.addr
	if from == m.host {
		addr = m.local
	}
	o := nodeOptions(addr, database.Login{}, timeout)
	o.Dialer = host.Dialer(from, timeout)
	return o
}

// changer is the name of connections that change the cluster. killChangers finds them by it.
const changer = "skerry-change"

// openChanger returns a connection from a node that changes the cluster.
func (m *member) openChanger(from host.Host) *goredis.Client {
	o := m.clientOptions(from, linkTimeout)
	o.ClientName = changer
	return goredis.NewClient(o)
}

// startNew starts an empty server and waits until it answers. The end of a joining one is no failure of the cluster.
func (c *cluster) startNew(ctx context.Context, h host.Host, joining bool) (*member, error) {
	m := c.newMember(h)
	// A new identity (nodes.conf) for each membership: members reject a forgotten one for a minute.
	if err := files.Empty(ctx, h.Files(), m.dir); err != nil {
		return nil, fmt.Errorf("emptying the directory of %s on %s: %w", c.kind.name, h.Name(), err)
	}
	if err := c.launch(ctx, m, joining); err != nil {
		return nil, errors.Join(err, m.admin.Close())
	}
	return m, nil
}

func (c *cluster) launch(ctx context.Context, m *member, joining bool) error {
	in := c.Installation(m.Name())
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{
		Command: host.Command{
			Name: c.kind.name, Path: in.Programs[c.kind.server], Env: in.Env,
			Args: c.options.arguments(m.host, m.dir), Dir: m.dir, Log: filepath.Join(m.dir, c.kind.name+".log"),
		},
		Ports: []int{c.options.port, c.options.port + busOffset},
		Grace: stopGrace, Joining: joining,
	})
	if err != nil {
		return err
	}
	m.SetServer(d)
	// A server that reads its data answers LOADING.
	if err := d.Await(ctx, upTimeout, func(ctx context.Context) error { return m.admin.Ping(ctx).Err() }); err != nil {
		return errors.Join(err, m.Halt(ctx, database.Abrupt))
	}
	return nil
}

func (m *member) stop(ctx context.Context) error {
	return errors.Join(m.Server().Stop(ctx), m.admin.Close())
}

// colour matches terminal colours, which redis-cli also prints into pipes.
var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (c *cluster) runCLI(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	p, err := c.Env.Control.Start(ctx, host.Command{
		Name: c.kind.cli, Path: c.Env.Installation.Programs[c.kind.cli], Env: c.Env.Installation.Env,
		Args: append([]string{"--cluster"}, args...), Stdout: &out, Stderr: &out,
	})
	if err != nil {
		return fmt.Errorf("starting redis-cli: %w", err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("redis-cli --cluster %s: %w", args[0], context.Cause(ctx)), p.Kill())
	}
	text := colour.ReplaceAllString(out.String(), "")
	c.Log.Debug("redis-cli", "args", args, "error", p.Err(), "output", text)
	if p.Err() != nil {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		return fmt.Errorf("redis-cli --cluster %s: %w: %s", strings.Join(args, " "), p.Err(),
			strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}
