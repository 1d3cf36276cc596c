package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// changeTimeout bounds a change of membership: an initial copy crosses slow links, a shard
// is drained chunk by chunk.
const changeTimeout = 30 * time.Minute

// retryChange asks for a change until the set grants it.
func (c *cluster) retryChange(ctx context.Context, ask func(context.Context) error) error {
	var final error
	err := c.Servers.Await(ctx, func(ctx context.Context) error {
		err := ask(ctx)
		if err != nil && !isRetryable(err) && !errors.Is(err, database.ErrNotReady) {
			final = err
			return nil
		}
		return err
	})
	return errors.Join(err, final)
}

// Join implements database.Cluster. In a replica set:
//
//	start, rs.add   accepted: the set has agreed on its new configuration
//	  wait          complete: the set says SECONDARY of it, its initial copy is done
//
// In a sharded cluster with shards of one member the node becomes a shard more:
//
//	start, addShard accepted: the config servers know it
//	  wait          complete: the balancer has nothing to move
func (c *cluster) Join(ctx context.Context, node host.Host) (change database.Change, err error) {
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	release, err := c.Vacant(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	if c.options.sharded && c.options.replicas > 1 {
		return fail(fmt.Errorf("%w: a shard has %d members, one node is none", database.ErrUnsupported, c.options.replicas))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	c.ReportProgress("%s is joining", node.Name())
	join, undo := c.joinSet, c.removeFromSet
	if c.options.sharded {
		join, undo = c.joinShard, c.drainShard
	}
	began := time.Now()
	err = join(ctx, node, func() { change.Accepted = time.Since(began) })
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), formTimeout)
		defer cancel()
		return fail(errors.Join(err, c.undoJoin(ctx, node, undo)))
	}
	for _, s := range c.AllOn(node.Name()) {
		s.Server().Staying()
	}
	change.Complete = time.Since(began)
	return change, nil
}

// undoJoin ends what a join that failed has left.
func (c *cluster) undoJoin(ctx context.Context, node host.Host, withdraw func(context.Context, []*server, func()) error) error {
	servers := c.AllOn(node.Name())
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Halt(ctx, database.Abrupt))
	}
	return errors.Join(append(errs, withdraw(ctx, servers, func() {}), c.dropServers(servers))...)
}

// joinSet makes a node a member of the replica set.
func (c *cluster) joinSet(ctx context.Context, node host.Host, accepted func()) error {
	s, err := c.addServer(node, process{role: roleMember, set: setName, port: c.options.port})
	if err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx, s, true); err != nil {
		return err
	}
	if err := c.retryChange(ctx, func(ctx context.Context) error {
		primary, err := c.findPrimary(ctx, setName)
		if err != nil {
			return err
		}
		return addMember(ctx, primary.admin, c.options.newMemberConfig(0, node.Name(), s.addr))
	}); err != nil {
		return err
	}
	accepted()
	return s.Server().Await(ctx, changeTimeout, func(ctx context.Context) error { return c.checkSet(ctx, setName) })
}

// joinShard makes a node a shard, with a mongos where every node has one.
func (c *cluster) joinShard(ctx context.Context, node host.Host, accepted func()) error {
	port := c.options.port + shardOffset
	set := c.shardNameAt(database.Reach(node, port))
	s, err := c.addServer(node, process{role: roleShard, set: set, port: port})
	if err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := c.launch(ctx, s, true); err != nil {
		return err
	}
	if err := c.formSet(ctx, set); err != nil {
		return err
	}
	router, err := c.findRouter()
	if err != nil {
		return err
	}
	if err := addShard(ctx, router.admin, set, []string{s.addr}); err != nil {
		return err
	}
	accepted()
	if len(c.options.mongos) == 0 {
		r, err := c.addServer(node, process{role: roleRouter, port: c.options.port})
		if err != nil {
			return err
		}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		if err := c.launch(ctx, r, true); err != nil {
			return err
		}
	}
	return s.Server().Await(ctx, changeTimeout, func(ctx context.Context) error { return checkBalanced(ctx, router.admin) })
}

// Leave implements database.Cluster. In a replica set:
//
//	step down       where it is primary
//	rs.remove       accepted: the set has agreed on its new configuration
//	  wait          complete: the members that are left serve without it
//
// A shard is drained, graceful alone:
//
//	removeShard     accepted: draining has started
//	  wait          complete: it says that it is completed
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (change database.Change, err error) {
	fail := func(err error) (database.Change, error) {
		return change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	servers, release, err := c.HoldAll(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
	defer cancel()
	if err := c.checkLeave(ctx, servers, manner); err != nil {
		return fail(err)
	}
	began := time.Now()
	if manner == database.Abrupt {
		for _, s := range servers {
			if err := s.Halt(ctx, database.Abrupt); err != nil {
				return fail(err)
			}
		}
	}
	withdraw := c.removeFromSet
	if c.options.sharded {
		withdraw = c.drainShard
	}
	if err := withdraw(ctx, servers, func() { change.Accepted = time.Since(began) }); err != nil {
		return fail(err)
	}
	for _, s := range servers {
		if err := s.Halt(ctx, database.Graceful); err != nil {
			return fail(err)
		}
	}
	if err := c.dropServers(servers); err != nil {
		return fail(err)
	}
	if err := c.Servers.Await(ctx, c.checkPrimaries); err != nil {
		return fail(err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// checkPrimaries returns nil when every set has a primary.
func (c *cluster) checkPrimaries(ctx context.Context) error {
	for _, set := range c.setNames() {
		if _, err := c.readSetStatus(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// checkLeave refuses what would lose data or leave the replica set without a majority, at the
// time that it agrees on the removal or afterwards.
func (c *cluster) checkLeave(ctx context.Context, servers []*server, manner database.Manner) error {
	if c.options.sharded {
		return c.checkShardLeave(servers, manner)
	}
	leaving := servers[0]
	all := c.serversInSet(setName)
	if len(all) == 1 {
		return fmt.Errorf("%w: it is the last member", database.ErrFixed)
	}
	primary, err := c.findPrimary(ctx, setName)
	if err != nil {
		return err
	}
	config, err := readConfig(ctx, primary.admin)
	if err != nil {
		return err
	}
	votes := make(map[string]int)
	total, left := 0, 0
	for _, m := range config.Members {
		votes[m.Host] = m.Votes
		total += m.Votes
	}
	for _, s := range all {
		if s != leaving && s.Running() {
			left += votes[s.addr]
		}
	}
	return daemon.Votes{All: total, Own: votes[leaving.addr], Others: left, Helps: manner == database.Graceful && leaving.Running()}.Check()
}

func (c *cluster) checkShardLeave(servers []*server, manner database.Manner) error {
	for _, s := range servers {
		if s.role == roleConfig {
			return fmt.Errorf("%w: a config server is there", database.ErrFixed)
		}
	}
	switch {
	case c.options.replicas > 1:
		return fmt.Errorf("%w: it holds a member of a shard's replica set", database.ErrFixed)
	case manner == database.Abrupt:
		return fmt.Errorf("%w: %s", database.ErrUnsupported, loneShard)
	case len(c.Select(func(s *server) bool { return s.role == roleShard })) == 1:
		return fmt.Errorf("%w: it is the last shard", database.ErrFixed)
	}
	return nil
}

// removeFromSet removes a member from the replica set.
func (c *cluster) removeFromSet(ctx context.Context, servers []*server, accepted func()) error {
	for _, s := range servers {
		primary, err := c.awaitPrimary(ctx)
		if err != nil {
			return err
		}
		if primary == s {
			// It may close the connection as it steps down; whether it did shows below.
			if err := stepDown(ctx, s.admin); err != nil && !mongo.IsNetworkError(err) {
				return err
			}
		}
		if err := c.retryChange(ctx, func(ctx context.Context) error {
			primary, err := c.findPrimary(ctx, setName)
			if err != nil {
				return err
			}
			if primary == s {
				return fmt.Errorf("%w: %s is still primary", database.ErrNotReady, s.host.Name())
			}
			return removeMember(ctx, primary.admin, s.addr)
		}); err != nil {
			return err
		}
		accepted()
		if d := s.Server(); d != nil {
			d.Leaving()
		}
		hosts := slices.DeleteFunc(c.setHosts(setName), func(h string) bool { return h == s.addr })
		if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkRemoved(ctx, s, hosts) }); err != nil {
			return err
		}
	}
	return nil
}

// awaitPrimary waits for an election to end.
func (c *cluster) awaitPrimary(ctx context.Context) (primary *server, err error) {
	err = c.Servers.Await(ctx, func(ctx context.Context) (err error) {
		primary, err = c.findPrimary(ctx, setName)
		return err
	})
	return primary, err
}

// checkRemoved returns nil when a primary is there and the set does not list a member.
func (c *cluster) checkRemoved(ctx context.Context, gone *server, left []string) error {
	st, err := c.readSetStatus(ctx, setName)
	if err != nil {
		return err
	}
	if st.memberState(gone.addr) != "" {
		return fmt.Errorf("%w: the set still lists %s", database.ErrNotReady, gone.host.Name())
	}
	if !slices.Contains(left, st.primary()) {
		return fmt.Errorf("%w: %s is primary", database.ErrNotReady, st.primary())
	}
	return nil
}

// drainShard drains the shard on a node.
func (c *cluster) drainShard(ctx context.Context, servers []*server, accepted func()) error {
	for _, s := range servers {
		if s.role != roleShard {
			continue
		}
		router, err := c.routerBeside(servers)
		if err != nil {
			return err
		}
		told := false
		if err := c.Servers.Await(ctx, func(ctx context.Context) error {
			r, err := removeShard(ctx, router.admin, s.set)
			if err != nil {
				return err
			}
			if !told {
				accepted()
				told = true
			}
			return c.checkDrained(ctx, router, s.set, r)
		}); err != nil {
			return err
		}
		for _, o := range servers {
			if d := o.Server(); d != nil {
				d.Leaving()
			}
		}
	}
	return nil
}

// checkDrained returns nil when a shard is none any more, and moves away what the balancer does
// not.
func (c *cluster) checkDrained(ctx context.Context, router *server, set string, r removal) error {
	if r.State == completed {
		return nil
	}
	if r.State == ongoing && r.Remaining.Chunks == 0 {
		for _, name := range r.ToMove {
			to := slices.DeleteFunc(c.setNames(), func(s string) bool { return s == set || s == configName })[0]
			if err := movePrimary(ctx, router.admin, name, to); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: %s has %d chunks left", database.ErrNotReady, set, r.Remaining.Chunks)
}

// routerBeside is a mongos that runs and is none of servers.
func (c *cluster) routerBeside(servers []*server) (*server, error) {
	for _, s := range c.Select(func(s *server) bool { return s.role == roleRouter && !slices.Contains(servers, s) }) {
		if s.Running() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no other mongos runs", database.ErrNotReady)
}
