package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

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

// Enter implements mysql.Group:
//
//	connected   accepted: the others count one more member
//	  copy      one of them, the donor, sends it all data, and later changes
//	Synced      every member reports that and counts all
func (c *cluster) Enter(ctx context.Context, s *mysql.Server, before []*mysql.Server, accepted func()) error {
	if err := c.launch(ctx, s); err != nil {
		return err
	}
	s.MarkLeaving()
	err := c.awaitServer(ctx, s, func(ctx context.Context) error {
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
	return c.awaitServer(ctx, s, func(ctx context.Context) error { return c.CheckAgreement(ctx, append(before, s)) })
}

func (c *cluster) awaitServer(ctx context.Context, s *mysql.Server, ready func(context.Context) error) error {
	d := s.Server()
	if d == nil {
		return fmt.Errorf("%s does not run", s.Host.Name())
	}
	return d.Await(ctx, joinTimeout, ready)
}

// EndMembership implements mysql.Group: on SHUTDOWN the server tells the group that it leaves, and ends. A lost
// member does not: the others give it up after evs_suspect_timeout, and continue if they are a majority.
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
	err := d.AwaitEnd(ctx, mysql.StopGrace)
	accepted()
	return err
}

// Restore implements mysql.Group. The member sends its position and receives what came after it if a donor still
// has that, else all data.
func (c *cluster) Restore(ctx context.Context, s *mysql.Server) error {
	p, err := c.readPosition(ctx, s)
	if err != nil {
		return err
	}
	args := []string{fmt.Sprintf("--wsrep-start-position=%s:%d", p.history, p.seqno)}
	if len(c.Running()) == 0 {
		if err := c.bootstrap(ctx, s, p); err != nil {
			return err
		}
		args = append(args, "--wsrep-new-cluster")
	} else if err := c.prepareRejoin(ctx, s); err != nil {
		return err
	}
	if err := c.launch(ctx, s, args...); err != nil {
		return err
	}
	s.MarkLeaving()
	if err := c.awaitServer(ctx, s, func(ctx context.Context) error { return c.CheckAgreement(ctx, c.Running()) }); err != nil {
		return errors.Join(err, s.Halt(context.WithoutCancel(ctx), database.Abrupt))
	}
	s.MarkMember()
	return nil
}

// Restart implements mysql.Group: the halted member is ahead of the running ones, or the call fails.
func (c *cluster) Restart(ctx context.Context, s *mysql.Server, running []*mysql.Server) error {
	p, err := c.readPosition(ctx, s)
	if err != nil {
		return err
	}
	if err := c.checkMostAdvanced(ctx, s.Host.Name(), p); err != nil {
		return err
	}
	c.ReportProgress("%s is ahead of those that run, which are no majority: beginning the cluster from it", s.Host.Name())
	for _, o := range running {
		if err := o.Halt(ctx, database.Graceful); err != nil {
			return fmt.Errorf("stopping %s, which is behind: %w", o.Host.Name(), err)
		}
	}
	for _, o := range append([]*mysql.Server{s}, running...) {
		if err := c.Restore(ctx, o); err != nil {
			return fmt.Errorf("starting %s after those that ran were stopped: %w", o.Host.Name(), err)
		}
	}
	return nil
}

// bootstrap prepares a member to begin the cluster: it left last, or no halted member is ahead.
func (c *cluster) bootstrap(ctx context.Context, s *mysql.Server, p position) error {
	if !p.safe {
		if err := c.checkMostAdvanced(ctx, s.Host.Name(), p); err != nil {
			return err
		}
	}
	p.safe = true
	if err := files.WriteText(ctx, s.Host.Files(), stateFile(s), p.text()); err != nil {
		return fmt.Errorf("marking it as the first: %w", err)
	}
	return removeView(ctx, s)
}

func (c *cluster) checkMostAdvanced(ctx context.Context, name string, p position) error {
	for _, o := range c.All() {
		if o.Running() || o.Host.Name() == name {
			continue
		}
		q, err := c.readPosition(ctx, o)
		if err != nil {
			return err
		}
		if q.history == p.history && q.seqno > p.seqno {
			return mysql.Behind(o, fmt.Sprintf("transaction %d, %s only %d", q.seqno, name, p.seqno))
		}
	}
	return nil
}

// prepareRejoin prepares a member's return. The others must first give up the killed process: two
// processes of one member at the same time cost them their majority.
func (c *cluster) prepareRejoin(ctx context.Context, s *mysql.Server) error {
	if err := c.AwaitAgreement(ctx, c.Running()); err != nil {
		return err
	}
	return removeView(ctx, s)
}

// AwaitAgreement implements mysql.Group. Without a primary component the servers wait for all members of the last
// one, including lost ones. Once they have found each other, they are made primary as an operator would do it,
// unless a halted member is ahead of them all.
func (c *cluster) AwaitAgreement(ctx context.Context, servers []*mysql.Server) error {
	var since time.Time // when they were first seen to wait
	var forced error    // of the last attempt to make them primary
	return c.AwaitGivenUp(ctx, func(ctx context.Context) error {
		err := c.CheckAgreement(ctx, servers)
		switch {
		case err == nil:
			return nil
		case !isWaiting(ctx, servers):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > stuckAfter:
			since = time.Time{}
			forced = c.forcePrimary(ctx, servers)
		}
		return errors.Join(err, forced)
	})
}

func (c *cluster) forcePrimary(ctx context.Context, servers []*mysql.Server) error {
	first, most := servers[0], status{Last: -1}
	for _, s := range servers {
		st, err := queryStatus(ctx, s)
		if err != nil {
			return err
		}
		if st.Last > most.Last {
			first, most = s, st
		}
	}
	if err := c.checkMostAdvanced(ctx, first.Host.Name(), position{history: most.History, seqno: most.Last}); err != nil {
		return err
	}
	c.ReportProgress("the members that run are no majority: making them the cluster (pc.bootstrap)")
	return first.Exec(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
}

// stuckAfter is how long members have to become a primary component by themselves.
const stuckAfter = 5 * time.Second

// isWaiting reports whether the servers are one component that is not primary.
func isWaiting(ctx context.Context, servers []*mysql.Server) bool {
	for _, s := range servers {
		st, err := queryStatus(ctx, s)
		if err != nil || st.Cluster == primary || st.Size != len(servers) {
			return false
		}
	}
	return true
}

// removeView removes a member's last view. With it the member would wait for all members of that
// view.
func removeView(ctx context.Context, s *mysql.Server) error {
	if err := s.Host.Files().Remove(ctx, filepath.Join(s.Data(), "gvwstate.dat")); err != nil {
		return fmt.Errorf("removing its last view: %w", err)
	}
	return nil
}
