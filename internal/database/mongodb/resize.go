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

// changeTimeout bounds a change: initial copies cross slow links, and shards drain chunk by chunk.
const changeTimeout = 30 * time.Minute

func (c *cluster) retryChange(ctx context.Context, change func(context.Context) error) error {
	var final error
	err := c.Servers.Await(ctx, func(ctx context.Context) error {
		err := change(ctx)
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
//	  wait          complete: the set reports it as SECONDARY, with its initial copy
//
// In a sharded cluster with shards of one member, the node becomes a further shard:
//
//	start, addShard accepted: the config servers know it
//	  wait          complete: the balancer has nothing to move
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	join, undo := c.joinSet, c.removeFromSet
	if c.options.sharded {
		join, undo = c.joinShard, c.drainShard
	}
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: changeTimeout,
		Check: func(context.Context) error {
			if c.options.sharded && c.options.replicas > 1 {
				return fmt.Errorf("%w: a shard needs %d nodes, got one", database.ErrUnsupported, c.options.replicas)
			}
			return nil
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			if err := join(ctx, node, timer.Accept); err != nil {
				return err
			}
			for _, s := range c.AllOn(node.Name()) {
				s.Server().MarkMember()
			}
			return nil
		},
		Undo: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, formTimeout)
			defer cancel()
			return c.undoJoin(ctx, node, undo)
		},
	})
}

func (c *cluster) undoJoin(ctx context.Context, node host.Host, withdraw func(context.Context, []*server, func()) error) error {
	servers := c.AllOn(node.Name())
	return errors.Join(haltAll(ctx, servers, database.Abrupt), withdraw(ctx, servers, func() {}), c.dropServers(servers))
}

func haltAll(ctx context.Context, servers []*server, manner database.Manner) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Halt(ctx, manner))
	}
	return errors.Join(errs...)
}

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
		primary, err := c.findPrimary(ctx)
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

// Leave implements database.Cluster. In a replica set:
//
//	step down       if it is primary
//	rs.remove       accepted: the set has agreed on its new configuration
//	  wait          complete: the remaining members serve without it
//
// A shard can leave gracefully only:
//
//	removeShard     accepted: draining has started
//	  wait          complete: removeShard reports completion
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	withdraw := c.removeFromSet
	if c.options.sharded {
		withdraw = c.drainShard
	}
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*server]{
		Timeout: changeTimeout,
		Check:   func(ctx context.Context, _ *server) error { return c.checkLeave(ctx, c.AllOn(node.Name()), manner) },
		Leave: func(ctx context.Context, _ *server, timer *daemon.ChangeTimer) error {
			servers := c.AllOn(node.Name())
			if manner == database.Abrupt {
				if err := haltAll(ctx, servers, database.Abrupt); err != nil {
					return err
				}
			}
			if err := withdraw(ctx, servers, timer.Accept); err != nil {
				return err
			}
			if err := haltAll(ctx, servers, database.Graceful); err != nil {
				return err
			}
			if err := c.dropServers(servers); err != nil {
				return err
			}
			return c.Servers.Await(ctx, c.checkPrimaries)
		},
	})
}

func (c *cluster) checkPrimaries(ctx context.Context) error {
	for _, set := range c.setNames() {
		if _, err := c.readSetStatus(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) checkLeave(ctx context.Context, servers []*server, manner database.Manner) error {
	if c.options.sharded {
		return c.checkShardLeave(servers, manner)
	}
	leaving := servers[0]
	all := c.serversInSet(setName)
	if len(all) == 1 {
		return fmt.Errorf("%w: it is the last member", database.ErrFixed)
	}
	primary, err := c.findPrimary(ctx)
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
	return daemon.Votes{
		All: total, Own: votes[leaving.addr], Others: left,
		Helps: manner == database.Graceful && leaving.Running(),
	}.Check()
}

func (c *cluster) removeFromSet(ctx context.Context, servers []*server, accepted func()) error {
	for _, s := range servers {
		primary, err := c.awaitPrimary(ctx)
		if err != nil {
			return err
		}
		if primary == s {
			// It may close the connection as it steps down; the loop below checks the result.
			if err := stepDown(ctx, s.admin); err != nil && !mongo.IsNetworkError(err) {
				return err
			}
		}
		if err := c.retryChange(ctx, func(ctx context.Context) error {
			primary, err := c.findPrimary(ctx)
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
			d.MarkLeaving()
		}
		hosts := slices.DeleteFunc(c.setHosts(setName), func(h string) bool { return h == s.addr })
		if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkRemoved(ctx, s, hosts) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) awaitPrimary(ctx context.Context) (primary *server, err error) {
	err = c.Servers.Await(ctx, func(ctx context.Context) (err error) {
		primary, err = c.findPrimary(ctx)
		return err
	})
	return primary, err
}

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

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, _ *server) error {
		servers := c.AllOn(node.Name())
		slices.Reverse(servers)
		return haltAll(ctx, servers, manner)
	})
}

// Revive implements database.Cluster. It returns when the node's members are primary or secondary.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, _ *server) error {
		ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, fmt.Errorf("not done after %v", changeTimeout))
		defer cancel()
		servers := c.AllOn(node.Name())
		for _, s := range servers {
			if s.Running() {
				continue
			}
			if err := c.launch(ctx, s, false); err != nil {
				return err
			}
		}
		for _, s := range servers {
			if s.set == "" {
				continue
			}
			if err := s.Server().Await(ctx, changeTimeout, func(ctx context.Context) error { return c.checkMember(ctx, s) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *cluster) checkMember(ctx context.Context, s *server) error {
	st, err := c.readSetStatus(ctx, s.set)
	if err != nil {
		return err
	}
	for _, m := range st.Members {
		if m.Name == s.addr && m.Health == 1 && (m.State == statePrimary || m.State == stateSecondary) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s reports %s as %s", database.ErrNotReady, s.set, s.addr, st.memberState(s.addr))
}
