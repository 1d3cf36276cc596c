package mongodb

import (
	"context"
	"fmt"

	"skerry/internal/database"
)

// readSetStatus queries the running members of a set in turn until one reports a primary.
func (c *cluster) readSetStatus(ctx context.Context, set string) (setStatus, error) {
	err := fmt.Errorf("%w: no member of %s runs", database.ErrNotReady, set)
	for _, s := range c.serversInSet(set) {
		if !s.Running() {
			continue
		}
		one, cancel := context.WithTimeout(ctx, adminTimeout)
		st, failed := readStatus(one, s.admin)
		cancel()
		switch {
		case failed != nil:
			err = failed
		case st.primary() != "":
			return st, nil
		default:
			err = fmt.Errorf("%w: %s has no primary", database.ErrNotReady, set)
		}
	}
	return setStatus{}, err
}

// checkSet returns nil if every server of a set is a serving member.
func (c *cluster) checkSet(ctx context.Context, set string) error {
	st, err := c.readSetStatus(ctx, set)
	if err != nil {
		return err
	}
	return st.checkServing(c.setHosts(set))
}

// findPrimary returns the primary of a cluster that is not sharded.
func (c *cluster) findPrimary(ctx context.Context) (*server, error) {
	st, err := c.readSetStatus(ctx, setName)
	if err != nil {
		return nil, err
	}
	for _, s := range c.serversInSet(setName) {
		if s.addr == st.primary() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: the primary %s of %s is not a server of this cluster", database.ErrNotReady, st.primary(), setName)
}

func (c *cluster) findRouter() (*server, error) {
	for _, s := range c.Select(func(s *server) bool { return s.role == roleRouter }) {
		if s.Running() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no mongos runs", database.ErrNotReady)
}

// findEntry returns the server for requests about the table: a mongos, or the primary.
func (c *cluster) findEntry(ctx context.Context) (*server, error) {
	if c.options.sharded {
		return c.findRouter()
	}
	return c.findPrimary(ctx)
}

// Ready implements database.Cluster: every set has a primary and secondaries, every mongos lists every shard.
func (c *cluster) Ready(ctx context.Context) error {
	for _, set := range c.setNames() {
		if err := c.checkSet(ctx, set); err != nil {
			return err
		}
	}
	shards := 0
	for _, set := range c.setNames() {
		if set != configName {
			shards++
		}
	}
	for _, s := range c.Select(func(s *server) bool { return s.role == roleRouter }) {
		if !s.Running() {
			return fmt.Errorf("%w: the mongos on %s does not run", database.ErrNotReady, s.host.Name())
		}
		list, err := listShards(ctx, s.admin)
		if err != nil {
			return fmt.Errorf("%w: the mongos on %s: %w", database.ErrNotReady, s.host.Name(), err)
		}
		if len(list) != shards {
			return fmt.Errorf("%w: the mongos on %s lists %d shards of %d", database.ErrNotReady, s.host.Name(), len(list), shards)
		}
	}
	return nil
}

// Members implements database.Cluster. A state is "PRIMARY" or, in a sharded cluster, "config SECONDARY, shard1
// PRIMARY, mongos".
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	states := make(map[string]setStatus)
	for _, set := range c.setNames() {
		st, err := c.readSetStatus(ctx, set)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		states[set] = st // without members if none answered
	}
	var rows map[string]int64
	var total int64
	if c.options.sharded {
		if s, err := c.findRouter(); err == nil {
			if rows, err = countRowsByShard(ctx, s.admin); err != nil {
				return nil, err
			}
		}
		for _, n := range rows {
			total += n
		}
	}
	var list []database.Member
	index := make(map[string]int)
	for _, s := range c.Select(func(*server) bool { return true }) {
		node := s.host.Name()
		if _, ok := index[node]; !ok {
			index[node] = len(list)
			list = append(list, database.Member{Node: node})
		}
		m := &list[index[node]]
		if err := c.describe(ctx, s, m, states[s.set], rows, total); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *cluster) describe(ctx context.Context, s *server, m *database.Member, st setStatus, rows map[string]int64, total int64) error {
	state := st.memberState(s.addr)
	if s.role == roleRouter {
		state = s.role
	}
	if !s.Running() || state == "" {
		state = "unreachable"
	}
	if c.options.sharded && s.role != roleRouter {
		state = s.label() + " " + state
	}
	if m.State != "" {
		state = m.State + ", " + state
	}
	m.State = state
	switch {
	case s.role == roleShard && total > 0:
		m.Rows += rows[s.set]
		m.Share += float64(rows[s.set]) / float64(total)
	case s.role == roleMember && s.Running():
		n, err := s.admin.Database(databaseName).Collection(collectionName).EstimatedDocumentCount(ctx)
		if err != nil {
			return ctx.Err() // its state reports that it does not answer
		}
		m.Rows, m.Share = n, 1
	}
	return nil
}

func (c *cluster) Count(ctx context.Context) (int64, error) {
	s, err := c.findEntry(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return countRows(ctx, s.admin)
}

func (c *cluster) Clear(ctx context.Context) error {
	s, err := c.findEntry(ctx)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return clearRows(ctx, s.admin)
}
