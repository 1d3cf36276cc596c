package galera

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

var _ mysql.Group = (*cluster)(nil)

// Join implements database.Cluster: a server without data starts and names the members.
//
//	connected   accepted: the others count one more member
//	  copy      one of them, the donor, sends it all data, and what comes meanwhile
//	Synced      complete: every member says so and counts all
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	return c.JoinGroup(ctx, node, c)
}

// Leave implements database.Cluster.
//
//	SHUTDOWN    accepted: the server ends, and says so to the group
//	  others    complete: its process is gone, they count one less and serve
//
// A member that was lost sends no word: the others give it up after evs_suspect_timeout and
// go on if they are a majority.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.LeaveGroup(ctx, node, manner, c)
}

func (c *cluster) CheckAgreement(ctx context.Context, servers []*mysql.Server) error {
	return checkAgreement(ctx, servers)
}

func (c *cluster) CountMembers(ctx context.Context, by *mysql.Server) (int, error) {
	st, err := queryStatus(ctx, by)
	return st.Size, err
}

func (c *cluster) Prepare(ctx context.Context, node host.Host) (*mysql.Server, error) {
	s, err := mysql.NewServer(node, Name, c.options.port)
	if err != nil {
		return nil, err
	}
	if err := s.Fill(ctx, nil, ports...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (c *cluster) Enter(ctx context.Context, s *mysql.Server, before []*mysql.Server, accepted func()) error {
	if err := c.launch(ctx, s); err != nil {
		return err
	}
	s.MarkLeaving()
	err := c.awaitServer(ctx, s, joinTimeout, func(ctx context.Context) error {
		n, err := c.CountMembers(ctx, before[0])
		if err == nil && n <= len(before) {
			err = fmt.Errorf("%s counts %d members", before[0].Host.Name(), n)
		}
		return err
	})
	if err != nil {
		return err
	}
	accepted()
	return c.awaitServer(ctx, s, joinTimeout, func(ctx context.Context) error { return checkAgreement(ctx, append(before, s)) })
}

func (c *cluster) awaitServer(ctx context.Context, s *mysql.Server, timeout time.Duration, ready func(context.Context) error) error {
	d := s.Server()
	if d == nil {
		return fmt.Errorf("%s does not run", s.Host.Name())
	}
	return d.Await(ctx, timeout, ready)
}

// EndMembership implements mysql.Group. A halted server has no process to end.
func (c *cluster) EndMembership(ctx context.Context, s *mysql.Server, manner database.Manner, accepted func()) error {
	if manner == database.Abrupt || !s.Running() {
		err := s.Halt(ctx, database.Abrupt)
		accepted()
		return err
	}
	d := s.BeginLeave()
	if err := s.Exec(ctx, "SHUTDOWN"); err != nil {
		return errors.Join(err, d.Stop(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, mysql.StopGrace)
	defer cancel()
	select {
	case <-d.Done():
		accepted()
		return nil
	case <-ctx.Done():
		err := d.Stop(context.WithoutCancel(ctx))
		accepted()
		return err
	}
}
