package hbase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// startFirst starts what the first node alone has.
func (c *cluster) startFirst(ctx context.Context) error {
	h := c.firstNode()
	s := c.site(h)
	if _, err := c.Servers.Start(ctx, h, zooKeeper.spec(c.Env.Installation, s)); err != nil {
		return err
	}
	if c.options.storage == storageHDFS {
		if err := c.format(ctx, s); err != nil {
			return err
		}
		d, err := c.Servers.Start(ctx, h, nameNode.spec(c.Env.Installation, s))
		if err != nil {
			return err
		}
		if err := d.Await(ctx, readyTimeout, func(ctx context.Context) error { return checkListening(ctx, h, portNameNode) }); err != nil {
			return err
		}
		close(c.nameNodeReady)
	}
	_, err := c.Servers.Start(ctx, h, hMaster.spec(c.Env.Installation, s))
	return err
}

// format makes the NameNode's directory.
func (c *cluster) format(ctx context.Context, s site) error {
	p, err := c.firstNode().Start(ctx, formatter.command(c.Env.Installation, s))
	if err != nil {
		return fmt.Errorf("formatting the NameNode: %w", err)
	}
	select {
	case <-p.Done():
		if p.Err() != nil {
			return fmt.Errorf("formatting the NameNode: %w; the last lines of its log:\n%s", p.Err(), p.Tail(tailLines))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("formatting the NameNode: %w", context.Cause(ctx)), p.Kill())
	}
}

// startServers starts what every node has, the DataNode once it can register: one that
// cannot waits for 5 s before it tries again. What is joining may end without that being
// the cluster's failure, until it has joined.
func (c *cluster) startServers(ctx context.Context, h host.Host, joining bool) ([]*daemon.Daemon, error) {
	r, err := c.startRole(ctx, h, regionServer, joining)
	if err != nil {
		return nil, err
	}
	if c.options.storage != storageHDFS {
		return []*daemon.Daemon{r}, nil
	}
	select {
	case <-c.nameNodeReady:
	case <-ctx.Done():
		return nil, fmt.Errorf("starting a DataNode on %s: waiting for the NameNode: %w", h.Name(), context.Cause(ctx))
	}
	d, err := c.startRole(ctx, h, dataNode, joining)
	return []*daemon.Daemon{d, r}, err
}

func (c *cluster) startRole(ctx context.Context, h host.Host, r role, joining bool) (*daemon.Daemon, error) {
	spec := r.spec(c.Env.Installation, c.site(h))
	spec.Joining = joining
	return c.Servers.Start(ctx, h, spec)
}

// checkZooKeeper asks ZooKeeper, from its own node, whether it runs without error.
func (c *cluster) checkZooKeeper(ctx context.Context) error {
	answer, err := c.queryZooKeeper(ctx, "ruok")
	if err == nil && strings.TrimSpace(answer) != "imok" {
		err = fmt.Errorf("it answers %q", answer)
	}
	if err != nil {
		return fmt.Errorf("%w: zookeeper on %s: %w", database.ErrNotReady, c.firstNode().Name(), err)
	}
	return nil
}

// queryZooKeeper sends it a word of four letters.
func (c *cluster) queryZooKeeper(ctx context.Context, word string) (string, error) {
	conn, err := host.Dialer(c.firstNode(), dialTimeout)(ctx, "tcp4", listenAddress(c.firstNode(), portZooKeeper))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// checkListening returns nil when a server of a node takes connections, asked from there.
func checkListening(ctx context.Context, h host.Host, port int) error {
	return host.Accepts(ctx, h, listenAddress(h, port), dialTimeout)
}

func listenAddress(h host.Host, port int) string {
	return net.JoinHostPort(h.Addr(), strconv.Itoa(port))
}
