package custom

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

type cluster struct {
	*daemon.Cluster[host.Host]
	def     Definition
	options map[string]any
}

var _ database.Cluster = (*cluster)(nil)

func (d *Database) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	if err := d.Check(len(env.Nodes), env.Options); err != nil {
		return nil, err
	}
	options, err := d.mergeOptions(env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{def: d.def, Cluster: daemon.NewCluster[host.Host](d.Name(), env), options: options}
	for _, h := range env.Nodes {
		c.Add(h)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	c.ReportProgress("starting %d servers", len(c.Env.Nodes))
	g, gctx := errgroup.WithContext(ctx)
	if c.def.Server.OneByOne {
		g.SetLimit(1)
	}
	for _, h := range c.Env.Nodes {
		g.Go(func() error {
			if err := context.Cause(gctx); err != nil {
				return err
			}
			return c.startServer(gctx, h, c.Env.Nodes, true, false)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(c.def.Form) > 0 {
		c.ReportProgress("forming the cluster")
		if err := c.runSteps(ctx, c.def.Form, change{node: c.Env.Nodes[0], members: c.Env.Nodes, on: "first"}); err != nil {
			return fmt.Errorf("forming the cluster: %w", err)
		}
	}
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	d := time.Duration(c.def.Timeout)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%w: %v", database.ErrNotReady, d))
}

func (c *cluster) dir(h host.Host) string { return filepath.Join(h.Dir(), c.def.Name) }

// startServer starts the server of a node and waits until it is up. If fresh, it empties the directory first.
func (c *cluster) startServer(ctx context.Context, h host.Host, members []host.Host, fresh, joining bool) error {
	d := c.templateData(h, members)
	uid, gid, err := c.def.Server.lookupUser(ctx, h.Files())
	if err != nil {
		return fmt.Errorf("starting %s on %s: %w", c.def.Name, h.Name(), err)
	}
	if fresh {
		if err := c.prepare(ctx, h, d, uid, gid); err != nil {
			return fmt.Errorf("preparing %s on %s: %w", c.def.Name, h.Name(), err)
		}
	}
	script, err := render(c.def.Server.Start, d)
	if err != nil {
		return err
	}
	ports, err := c.renderPorts(d)
	if err != nil {
		return err
	}
	server, err := c.Servers.Start(ctx, h, daemon.Spec{
		Command: host.Command{
			Name: c.def.Name, Path: "/bin/sh", Args: []string{"-c", script}, Env: environment(c.Env.Installation),
			Dir: d.Dir, Log: filepath.Join(h.Dir(), c.def.Name+".log"), UID: uid, GID: gid,
		},
		Ports: ports, Grace: time.Duration(c.def.Server.Grace), Joining: joining,
	})
	if err != nil {
		return err
	}
	return server.Await(ctx, time.Duration(c.def.Timeout), func(ctx context.Context) error {
		_, err := c.runCommand(ctx, h, c.def.Server.Up, d)
		return err
	})
}

func (c *cluster) prepare(ctx context.Context, h host.Host, d templateData, uid, gid uint32) error {
	on := h.Files()
	if err := files.Empty(ctx, on, d.Dir); err != nil {
		return err
	}
	for name, text := range c.def.Server.Files {
		content, err := render(text, d)
		if err != nil {
			return err
		}
		path := filepath.Join(d.Dir, name)
		if err := on.MakeDir(ctx, filepath.Dir(path)); err != nil {
			return err
		}
		if err := files.WriteText(ctx, on, path, content); err != nil {
			return err
		}
	}
	if c.def.Server.Prepare != "" {
		if _, err := c.runCommand(ctx, h, c.def.Server.Prepare, d); err != nil {
			return err
		}
	}
	if uid == 0 {
		return nil
	}
	return on.Own(ctx, d.Dir, uid, gid)
}

func (c *cluster) renderPorts(d templateData) ([]int, error) {
	var ports []int
	for _, text := range c.def.Server.Ports {
		rendered, err := render(text, d)
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(strings.TrimSpace(rendered))
		if err != nil || port < 1 || port > 65535 {
			return nil, fmt.Errorf("%w: server.ports: %q is no port", ErrDefinition, rendered)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func (c *cluster) Ready(ctx context.Context) error {
	command := c.def.Ready
	if command == "" {
		command = c.def.Server.Up
	}
	members := c.All()
	return daemon.ForEach(ctx, members, func(ctx context.Context, _ int, m host.Host) error {
		if _, err := c.runCommand(ctx, m, command, c.templateData(m, members)); err != nil {
			return fmt.Errorf("%s is not ready: %w", m.Name(), err)
		}
		return nil
	})
}

func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	members := c.All()
	list := make([]database.Member, len(members))
	for i, m := range members {
		list[i] = database.Member{Node: m.Name(), State: "up"}
		if len(c.Servers.RunningOn(m.Name())) == 0 {
			list[i].State = "down"
		} else if c.def.State != "" {
			out, err := c.runCommand(ctx, m, c.def.State, c.templateData(m, members))
			if err != nil {
				return nil, fmt.Errorf("reading the state of %s: %w", m.Name(), err)
			}
			list[i].State = strings.TrimSpace(out)
		}
	}
	return list, nil
}

func (c *cluster) Count(ctx context.Context) (int64, error) {
	members := c.All()
	out, err := c.runCommand(ctx, members[0], c.def.Count, c.templateData(members[0], members))
	if err != nil {
		return 0, fmt.Errorf("counting the rows: %w", err)
	}
	var sum int64
	for _, word := range strings.Fields(out) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("counting the rows: the command printed %q, want whole numbers", out)
		}
		sum += n
	}
	return sum, nil
}

func (c *cluster) Clear(ctx context.Context) error {
	members := c.All()
	if _, err := c.runCommand(ctx, members[0], c.def.Clear, c.templateData(members[0], members)); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}

func (c *cluster) Properties() map[string]string {
	members := c.All()
	if len(members) == 0 {
		return c.def.clientProperties(templateData{})
	}
	return c.def.clientProperties(c.templateData(members[0], members))
}

func (c *cluster) Stop(ctx context.Context) error { return c.Servers.Stop(ctx) }

// passwdFile lists the users of a machine as name:password:UID:GID:...
const passwdFile = "/etc/passwd"

// lookupUser returns the IDs of the user that runs the server, 0 for the user of the agent.
func (s Server) lookupUser(ctx context.Context, on files.System) (uid, gid uint32, err error) {
	if s.User == "" {
		return 0, 0, nil
	}
	text, err := files.Read(ctx, on, passwdFile)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(text) {
		if f := strings.Split(line, ":"); len(f) > 3 && f[0] == s.User {
			id, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", passwdFile, s.User, err)
			}
			group, err := strconv.ParseUint(f[3], 10, 32)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: user %s: %w", passwdFile, s.User, err)
			}
			return uint32(id), uint32(group), nil
		}
	}
	return 0, 0, fmt.Errorf("unknown user %s", s.User)
}
