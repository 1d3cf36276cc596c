package galera

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/host"
)

// Join implements database.Cluster: a server without data starts and names the members.
//
//	connected   accepted: the others count one more member
//	  copy      one of them, the donor, sends it all data, and what comes meanwhile
//	Synced      complete: every member says so and counts all
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var change database.Change
	if !c.Changing.TryLock() {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrBusy)
	}
	defer c.Changing.Unlock()
	if c.On(node.Name()) != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), database.ErrMember)
	}
	before := c.Running()
	if err := agree(ctx, before); err != nil {
		return change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	c.Say("%s is joining", node.Name())
	began := time.Now()
	s := mysql.NewServer(node, Name, c.options.port)
	if err := s.Fill("", ports...); err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), s.Close())
	}
	c.Add(s)
	err := c.launch(ctx, s)
	if err == nil {
		s.OnTrial()
		err = c.until(ctx, s, joinTimeout, func(ctx context.Context) error {
			st, err := ask(ctx, before[0])
			if err == nil && st.Size <= len(before) {
				err = fmt.Errorf("%s counts %d members", before[0].Host.Name(), st.Size)
			}
			return err
		})
	}
	if err == nil {
		change.Accepted = time.Since(began)
		err = c.until(ctx, s, joinTimeout, func(ctx context.Context) error { return agree(ctx, append(before, s)) })
	}
	if err != nil {
		return change, errors.Join(fmt.Errorf("joining %s: %w", node.Name(), err), c.expel(context.WithoutCancel(ctx), s))
	}
	s.Stays()
	change.Complete = time.Since(began)
	return change, nil
}

// expel ends a server and waits until the others go on without it.
func (c *cluster) expel(ctx context.Context, s *mysql.Server) error {
	if err := c.Remove(ctx, s); err != nil {
		return err
	}
	return c.settle(ctx, c.Running())
}

// until waits for a server's state; its end, too, ends the wait.
func (c *cluster) until(ctx context.Context, s *mysql.Server, timeout time.Duration, ready func(context.Context) error) error {
	d := s.Daemon()
	if d == nil {
		return fmt.Errorf("%s does not run", s.Host.Name())
	}
	return d.Await(ctx, timeout, ready)
}

// Leave implements database.Cluster.
//
//	SHUTDOWN    accepted: the server ends, and says so to the group
//	  others    complete: its process is gone, they count one less and serve
//
// A member that was lost sends no word: the others give it up after evs_suspect_timeout and
// go on if they are a majority.
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
	if err := c.end(ctx, s, manner); err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	change.Accepted = time.Since(began)
	if err := c.expel(ctx, s); err != nil {
		return change, fmt.Errorf("removing %s: %w", node.Name(), err)
	}
	change.Complete = time.Since(began)
	return change, nil
}

// mayLeave refuses to end a cluster: its last member stays, and so does one without whom
// the others would be no majority of those that were there.
func (c *cluster) mayLeave(ctx context.Context, s *mysql.Server, rest []*mysql.Server, manner database.Manner) error {
	if len(rest) == 0 {
		return fmt.Errorf("%w: it is the last", database.ErrFixed)
	}
	if !s.Running() || manner == database.Graceful {
		return nil
	}
	st, err := ask(ctx, rest[0])
	if err != nil {
		return err
	}
	if 2*len(rest) <= st.Size {
		return fmt.Errorf("%w: %d of %d members would be no majority", database.ErrFixed, len(rest), st.Size)
	}
	return nil
}

// end ends a member's server and waits until it is gone. One that was halted before has
// nothing to end.
func (c *cluster) end(ctx context.Context, s *mysql.Server, manner database.Manner) error {
	if manner == database.Abrupt || !s.Running() {
		return s.Halt(ctx, true)
	}
	d := s.Leaving()
	if err := s.Exec(ctx, "SHUTDOWN"); err != nil {
		return errors.Join(err, d.Stop(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, mysql.StopGrace)
	defer cancel()
	select {
	case <-d.Done():
		return nil
	case <-ctx.Done():
		return d.Stop(context.WithoutCancel(ctx))
	}
}
