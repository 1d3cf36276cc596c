package ndb

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// launchData starts a data node without its angel process, which it would outlive. The end of a trial is no
// failure of the cluster.
func (c *cluster) launchData(ctx context.Context, m member, trial bool, args ...string) (*daemon.Daemon, error) {
	if err := mysql.GiveToServerUser(ctx, m.Host, m.Dir); err != nil {
		return nil, err
	}
	d, err := c.Servers.Start(ctx, m.Host, daemon.Spec{
		Command: mysql.AsServerUser(host.Command{
			Name: "ndbmtd", Path: c.Env.Installation.Programs["ndbmtd"], Env: c.Env.Installation.Env, Dir: m.dataDir(),
			Log: filepath.Join(m.Dir, "ndbmtd.log"),
			Args: append([]string{"--no-defaults", "--foreground", "--ndb-connectstring=" + c.managerAddr(),
				fmt.Sprintf("--ndb-nodeid=%d", m.id)}, args...),
		}),
		Ports: []int{dataPort}, Grace: mysql.StopGrace, Joining: trial,
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.data[m.Server] = d
	c.mu.Unlock()
	return d, nil
}

// reviveData starts a data node on trial and waits until it has started, in a node group or not.
func (c *cluster) reviveData(ctx context.Context, m member, args ...string) (*daemon.Daemon, error) {
	d, err := c.launchData(ctx, m, true, args...)
	if err != nil {
		return nil, err
	}
	return d, d.Await(ctx, startTimeout, func(ctx context.Context) error {
		peers, err := c.queryPeers(ctx)
		if err == nil && !peers[m.id].started() {
			err = fmt.Errorf("the data node on %s has not started", m.Host.Name())
		}
		return err
	})
}

func (c *cluster) launchSQL(ctx context.Context, m member) error {
	d, err := m.StartMySQL(ctx, &c.Servers, c.Env.Installation)
	if err != nil {
		return err
	}
	return m.AwaitAnswer(ctx, d, upTimeout)
}

// reviveSQL is launchSQL for a node whose end is no failure of the cluster.
func (c *cluster) reviveSQL(ctx context.Context, m member) error {
	d, err := m.StartMySQL(ctx, &c.Servers, c.Env.Installation)
	if err != nil {
		return err
	}
	m.MarkLeaving()
	return m.AwaitAnswer(ctx, d, upTimeout)
}

// awaitData waits until data nodes have started and are in node groups. The error quotes the log of one that has
// not, preferably of an unknown one: the others wait for it.
func (c *cluster) awaitData(ctx context.Context, members []member) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not started after %v", startTimeout))
	defer cancel()
	late := members
	err := c.Servers.Await(ctx, func(ctx context.Context) error {
		peers, err := c.queryPeers(ctx)
		if err != nil {
			return err
		}
		late = slices.DeleteFunc(slices.Clone(members), func(m member) bool {
			p := peers[m.id]
			return p.started() && p.group >= 0
		})
		if len(late) == 0 {
			return nil
		}
		if i := slices.IndexFunc(late, func(m member) bool { return !peers[m.id].connected }); i > 0 {
			late[0], late[i] = late[i], late[0]
		}
		return fmt.Errorf("%d data nodes have not started", len(late))
	})
	if err == nil || len(late) == 0 || c.Servers.Err() != nil {
		return err
	}
	c.mu.Lock()
	d := c.data[late[0].Server]
	c.mu.Unlock()
	return fmt.Errorf("the data node on %s: %w%s", late[0].Host.Name(), err, d.LastLines())
}

type peer struct {
	id        int
	kind      string // NDB, MGM, API
	connected bool
	starting  bool // also while it stops, and in every other state but started
	group     int  // its node group, -1 for none
}

func (p peer) started() bool { return p.connected && !p.starting }

// peerLine is a line of ndb_mgm's SHOW:
//
//	id=1    @10.0.0.1  (mysql-8.0.44 ndb-8.0.44, Nodegroup: 0, *)
//	id=2    @10.0.0.2  (mysql-8.0.44 ndb-8.0.44, starting, Nodegroup: 0)
//	id=3    @10.0.0.3  (mysql-8.0.44 ndb-8.0.44, no nodegroup)
//	id=4   (mysql-8.0.44 ndb-8.0.44, not started)
//	id=5 (not connected, accepting connect from 10.0.0.5)
//
// A node whose address the management node does not know yet has none. What is said of a
// data node that has started is its node group alone.
var (
	peerLine   = regexp.MustCompile(`^id=(\d+)\s+(?:@\S+\s+)?\((.*)\)`)
	kindLine   = regexp.MustCompile(`^\[\w+\((\w+)\)\]`)
	groupInfo  = regexp.MustCompile(`Nodegroup: (\d+)`)
	transition = regexp.MustCompile(`\b(starting|shutting down|restarting|not started|not connected|single user mode|unknown state)\b`)
)

func parseShow(output string) (map[int]peer, error) {
	peers := make(map[int]peer)
	kind := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if m := kindLine.FindStringSubmatch(line); m != nil {
			kind = m[1]
			continue
		}
		m := peerLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, fmt.Errorf("reading ndb_mgm's SHOW: %q: %w", line, err)
		}
		p := peer{id: id, kind: kind, connected: !strings.HasPrefix(m[2], "not connected,"), group: -1}
		p.starting = p.connected && transition.MatchString(m[2])
		if g := groupInfo.FindStringSubmatch(m[2]); g != nil {
			if p.group, err = strconv.Atoi(g[1]); err != nil {
				return nil, fmt.Errorf("reading ndb_mgm's SHOW: %q: %w", line, err)
			}
		}
		peers[id] = p
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("ndb_mgm's SHOW names no node: %q", strings.TrimSpace(output))
	}
	return peers, nil
}

var created = regexp.MustCompile(`Nodegroup (\d+) created`)

func (c *cluster) runManager(ctx context.Context, command string) (string, error) {
	return mysql.Run(ctx, c.manager, host.Command{
		Name: "ndb_mgm", Path: c.Env.Installation.Programs["ndb_mgm"], Env: c.Env.Installation.Env,
		Args: []string{"--no-defaults", "--ndb-connectstring=" + c.managerAddr(), "--connect-retries=1", "-e", command},
	})
}

func (c *cluster) queryPeers(ctx context.Context) (map[int]peer, error) {
	out, err := c.runManager(ctx, "SHOW")
	if err != nil {
		return nil, err
	}
	return parseShow(out)
}

func (c *cluster) managerAddr() string { return fmt.Sprintf("%s:%d", c.manager.Addr(), managePort) }

// startManager starts the management node with a fresh configuration for the members, or with its previous one, and
// returns when it knows all members.
//
// Fresh is --initial: --reload would keep connections to nodes that the new configuration lacks ("could not be removed
// at this time"), and a node on the machine of such a one is never seen.
func (c *cluster) startManager(ctx context.Context, fresh bool) error {
	dir := manageDir(c.manager)
	if err := c.manager.Files().MakeDir(ctx, dir); err != nil {
		return fmt.Errorf("creating the directory of the management node: %w", err)
	}
	file := filepath.Join(dir, "config.ini")
	text := c.options.config(c.manager, c.members(), len(c.Env.Nodes))
	if err := files.WriteText(ctx, c.manager.Files(), file, text); err != nil {
		return fmt.Errorf("writing config.ini: %w", err)
	}
	if err := mysql.GiveToServerUser(ctx, c.manager, dir); err != nil {
		return err
	}
	args := []string{"--no-defaults", "--nodaemon", "--config-file=" + file, "--configdir=" + dir, fmt.Sprintf("--ndb-nodeid=%d", manageID)}
	if fresh {
		args = append(args, "--initial")
	}
	d, err := c.Servers.Start(ctx, c.manager, daemon.Spec{
		Command: mysql.AsServerUser(host.Command{
			Name: "ndb_mgmd", Path: c.Env.Installation.Programs["ndb_mgmd"], Env: c.Env.Installation.Env, Dir: dir,
			Log:  filepath.Join(dir, "ndb_mgmd.log"),
			Args: args,
		}),
		Ports: []int{managePort}, Grace: mysql.StopGrace,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.management = d
	c.mu.Unlock()
	return d.Await(ctx, upTimeout, func(ctx context.Context) error {
		peers, err := c.queryPeers(ctx)
		if err != nil {
			return err
		}
		return checkConfigured(peers, c.members())
	})
}

// checkConfigured returns nil if the management node's configuration has all members.
func checkConfigured(peers map[int]peer, members []member) error {
	for _, m := range members {
		for _, id := range []int{m.id, m.sqlID()} {
			if _, ok := peers[id]; !ok {
				return fmt.Errorf("the management node does not know node %d, on %s, yet", id, m.Host.Name())
			}
		}
	}
	return nil
}
