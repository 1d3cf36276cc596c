package ndb

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// peer is a node as the management node sees it.
type peer struct {
	id        int
	kind      string // NDB, MGM, API
	connected bool
	starting  bool // also while it stops, and in every other state but started
	group     int  // its node group, -1 for none
}

// started tells whether a node does its part.
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

// parseShow reads what ndb_mgm -e SHOW prints.
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

// created is how ndb_mgm tells that CREATE NODEGROUP succeeded.
var created = regexp.MustCompile(`Nodegroup (\d+) created`)

// runManager has the management client run a command, on the management node itself.
func (c *cluster) runManager(ctx context.Context, command string) (string, error) {
	return mysql.Run(ctx, c.manager, host.Command{
		Name: "ndb_mgm", Path: c.Env.Installation.Programs["ndb_mgm"], Env: c.Env.Installation.Env,
		Args: []string{"--no-defaults", "--ndb-connectstring=" + c.managerAddr(), "--connect-retries=1", "-e", command},
	})
}

// queryPeers asks for all nodes.
func (c *cluster) queryPeers(ctx context.Context) (map[int]peer, error) {
	out, err := c.runManager(ctx, "SHOW")
	if err != nil {
		return nil, err
	}
	return parseShow(out)
}

// managerAddr is where the management node takes others.
func (c *cluster) managerAddr() string { return fmt.Sprintf("%s:%d", c.manager.Addr(), managePort) }

// startManager starts the management node: fresh, with the configuration as it is for the members
// (which it keeps), or with the one that it has. It returns when all members are in it.
//
// Fresh is --initial: with --reload it would begin with the configuration that it had and
// change it afterwards, which leaves connections to nodes that are in it no more ("could not
// be removed at this time") - and a node on the machine of such a one is never seen.
func (c *cluster) startManager(ctx context.Context, fresh bool) error {
	dir := manageDir(c.manager)
	if err := c.manager.Files().MakeDir(ctx, dir); err != nil {
		return fmt.Errorf("making the directory of the management node: %w", err)
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
			Name: "ndb_mgmd", Path: c.Env.Installation.Programs["ndb_mgmd"], Env: c.Env.Installation.Env, Dir: dir, Log: filepath.Join(dir, "ndb_mgmd.log"),
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

// checkConfigured returns nil when a management node's configuration has all members.
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
