package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// formTimeout bounds the formation of a cluster.
	formTimeout = 2 * time.Minute
	// joinTimeout bounds a join or a return: the member may have to receive all data.
	joinTimeout = 10 * time.Minute
)

type cluster struct {
	*mysql.GroupCluster
	options options
	parts   parts
}

var (
	_ database.Cluster    = (*cluster)(nil)
	_ database.Replicated = (*cluster)(nil)
	_ mysql.Group         = (*cluster)(nil)
)

func (g *Galera) Start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	f, err := locate(ctx, env.Nodes[0].Files(), env.Installation)
	if err != nil {
		return nil, err
	}
	c := &cluster{GroupCluster: mysql.NewGroupCluster(env, &g.Driver, "wsrep_sync_wait=0;wsrep_dirty_reads=ON"), options: o, parts: f}
	c.SetGroup(c)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Kill(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	c.ReportProgress("preparing the data of %d members", len(c.Env.Nodes))
	template, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	defer template.Remove(ctx)
	for _, h := range c.Env.Nodes {
		s, err := mysql.NewServer(h, Name, c.options.port)
		if err != nil {
			return err
		}
		c.Add(s)
	}
	segments := c.segments()
	servers := c.All()
	err = daemon.ForEach(ctx, servers, func(ctx context.Context, i int, s *mysql.Server) error {
		if err := s.Fill(ctx, template, ports...); err != nil {
			return err
		}
		if err := seed(ctx, s, i, len(servers), segments); err != nil {
			return err
		}
		start := []string{"--wsrep-start-position=" + history + ":0"}
		if len(servers) == 1 { // there are no other members to find
			start = append(start, "--wsrep-new-cluster")
			if err := c.bootstrap(ctx, s, position{history: history}); err != nil {
				return err
			}
		}
		return c.launch(ctx, s, start...)
	})
	if err != nil {
		return err
	}
	c.ReportProgress("forming the cluster")
	ctx, cancel := context.WithTimeoutCause(ctx, formTimeout, fmt.Errorf("not formed after %v", formTimeout))
	defer cancel()
	if err := c.Servers.Await(ctx, c.Ready); err != nil {
		if c.Err() == nil { // that of a server that ended holds its log
			err = fmt.Errorf("%w%s", err, lastLines(servers))
		}
		return fmt.Errorf("forming the cluster: %w", err)
	}
	return nil
}

func (c *cluster) prepare(ctx context.Context) (*mysql.Template, error) {
	h := c.Env.Nodes[0]
	dir := filepath.Join(h.Dir(), Name+"-template")
	if err := files.Empty(ctx, h.Files(), dir); err != nil {
		return nil, fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	// The installer creates users without a name, which the server would find before ours.
	grant := filepath.Join(dir, "grant.sql")
	text := "DELETE FROM mysql.global_priv WHERE User = '';\nFLUSH PRIVILEGES;\n" + mysql.Grant
	if err := files.WriteText(ctx, h.Files(), grant, text); err != nil {
		return nil, fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	data := filepath.Join(dir, "data")
	// A server removes what others have left in its folder for temporary tables, also while they are at it.
	_, err := mysql.Run(ctx, h, host.Command{
		Name: "mariadb-install-db", Path: c.Env.Installation.Programs["mariadb-install-db"], Env: c.programsEnv(),
		Args: []string{"--no-defaults", "--basedir=" + c.parts.base, "--datadir=" + data, "--tmpdir=" + dir, "--user=root",
			"--auth-root-authentication-method=normal",
			"--skip-test-db", fmt.Sprintf("--innodb-log-file-size=%d", c.options.log), "--extra-file=" + grant},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", mysql.ErrNoTemplate, err)
	}
	return &mysql.Template{Host: h, Dir: dir, Data: data}, nil
}

func (c *cluster) launch(ctx context.Context, s *mysql.Server, args ...string) error {
	var group []string
	for _, o := range c.All() {
		group = append(group, o.Host.Addr())
	}
	segment := 0
	if i := slices.Index(c.All(), s); c.options.segments && i >= 0 {
		segment = c.segments()[i]
	}
	if err := c.options.settings(s.Host, c.parts, group, segment).Write(ctx, s.Host.Files(), s.ConfigFile(), "mysqld"); err != nil {
		return err
	}
	_, err := s.Start(ctx, &c.Servers, host.Command{
		Name: "mariadbd", Path: c.Env.Installation.Programs["mariadbd"], Env: c.programsEnv(),
		Args: append([]string{"--defaults-file=" + s.ConfigFile()}, args...),
	}, ports...)
	return err
}

// programsEnv makes the server find the programs that copy its state, and these their libraries.
func (c *cluster) programsEnv() []string {
	base := c.parts.base
	path := fmt.Sprintf("PATH=%[1]s/bin:%[1]s/sbin:%[2]s", base, host.SearchPath)
	return append(slices.Clone(c.Env.Installation.Env), path)
}

// segments numbers the members' sites. One member of a segment relays messages from other segments.
func (c *cluster) segments() []int {
	var sites []string
	servers := c.All()
	numbers := make([]int, len(servers))
	for i, s := range servers {
		if !c.options.segments {
			continue
		}
		at := slices.Index(sites, s.Host.Site())
		if at < 0 {
			at = len(sites)
			sites = append(sites, s.Host.Site())
		}
		numbers[i] = at
	}
	return numbers
}

func (c *cluster) Properties() map[string]string {
	return map[string]string{mysql.PropHosts: c.Addrs(), mysql.PropMember: c.options.member}
}

func lastLines(servers []*mysql.Server) string {
	var b []byte
	for _, s := range servers {
		if d := s.Server(); d != nil {
			b = fmt.Appendf(b, "; %s%s", s.Host.Name(), d.LastLines())
		}
	}
	return string(b)
}
