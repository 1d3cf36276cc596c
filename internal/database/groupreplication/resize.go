package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/host"
)

// Join implements database.Cluster.
//
//	START GROUP_REPLICATION   accepted: the group counts one member more
//	  recovery                a member sends what the new one lacks, from its binary logs
//	ONLINE                    complete: every member sees it so
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var change database.Change
	if !c.Changing.TryLock() {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.Changing.Unlock()
	if c.On(node.Name()) != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrMember)
	}
	if n := len(c.All()); n >= maxMembers {
		return change, fmt.Errorf("joining %s: %w: a group has at most %d members", node.Name(), database.ErrUnsupported, maxMembers)
	}
	before := c.Running()
	if err := agree(ctx, before); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	c.Say("%s is joining", node.Name())
	began := time.Now()
	s := mysql.NewServer(node, Name, c.options.port)
	if err := c.fill(s); err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), s.Close())
	}
	c.Add(s)
	accepted, err := c.admit(ctx, s, append(before, s), false)
	if err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), c.expel(context.WithoutCancel(ctx), s))
	}
	return database.Change{Accepted: accepted.Sub(began), Complete: time.Since(began)}, nil
}

// admit starts a server, has it enter the group, or a new one, and waits until all members
// see each other ONLINE. It returns when the group had counted it.
func (c *cluster) admit(ctx context.Context, s *mysql.Server, members []*mysql.Server, first bool) (accepted time.Time, err error) {
	if !s.Running() {
		if err := c.launchOnTrial(ctx, s); err != nil {
			return accepted, err
		}
	}
	d := s.Daemon()
	if d == nil {
		return accepted, fmt.Errorf("%s was halted", s.Host.Name())
	}
	entering, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("not a member after %v", joinTimeout))
	defer cancel()
	if err := c.enter(entering, s, first); err != nil {
		return accepted, fmt.Errorf("%w%s", err, d.LastLines())
	}
	accepted = time.Now()
	if err := d.Await(ctx, joinTimeout, func(ctx context.Context) error { return agree(ctx, members) }); err != nil {
		return accepted, err
	}
	s.Stays()
	return accepted, nil
}

// launchOnTrial is launch of a server whose end is no failure of the cluster.
func (c *cluster) launchOnTrial(ctx context.Context, s *mysql.Server) error {
	d, err := c.begin(ctx, s)
	if err != nil {
		return err
	}
	s.OnTrial()
	return answers(ctx, s, d)
}

// expel ends a server and waits until the others go on without it.
func (c *cluster) expel(ctx context.Context, s *mysql.Server) error {
	if err := c.Remove(ctx, s); err != nil {
		return err
	}
	return c.among(ctx, c.Running())
}

// among waits until the servers see each other and nobody else.
func (c *cluster) among(ctx context.Context, servers []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, expelTimeout, fmt.Errorf("the others still count it after %v", expelTimeout))
	defer cancel()
	return c.Set.Await(ctx, func(ctx context.Context) error { return agree(ctx, servers) })
}

// Leave implements database.Cluster.
//
//	STOP GROUP_REPLICATION    accepted: the group counts one member less
//	SIGTERM                   complete: its process is gone, the others are ONLINE and have a primary
//
// A member that was lost sends no word: the others suspect it after 5 s and expel it
// group_replication_member_expel_timeout later, if they are a majority.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	var change database.Change
	if !c.Changing.TryLock() {
		return change, fmt.Errorf("removing %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.Changing.Unlock()
	s, err := c.Member("removing", node)
	if err != nil {
		return change, err
	}
	rest := c.Others(s)
	if err := c.mayLeave(ctx, s, rest, manner); err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	c.Say("%s is leaving", node.Name())
	began := time.Now()
	if s.Running() && manner == database.Graceful {
		err = s.Exec(ctx, "STOP GROUP_REPLICATION")
	}
	if err == nil && manner == database.Abrupt {
		err = s.Halt(ctx, true)
	}
	if err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	change.Accepted = time.Since(began)
	if err := s.Halt(ctx, false); err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	if err := c.expel(ctx, s); err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// mayLeave refuses to end a group: its last member stays, and so does one without whom the
// others would be no majority of those that were there.
func (c *cluster) mayLeave(ctx context.Context, s *mysql.Server, rest []*mysql.Server, manner database.Manner) error {
	if len(rest) == 0 {
		return fmt.Errorf("%w: it is the last", database.ErrFixed)
	}
	if !s.Running() || manner == database.Graceful {
		return nil
	}
	v, err := view(ctx, rest[0])
	if err != nil {
		return err
	}
	if 2*len(rest) <= len(v) {
		return fmt.Errorf("%w: %d of %d members would be no majority", database.ErrFixed, len(rest), len(v))
	}
	return nil
}
