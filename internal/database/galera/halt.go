package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// ErrBehind means that a cluster cannot begin from a member, because another one is ahead.
var ErrBehind = errors.New("another member has later transactions")

// errRuns means that a member was not halted.
var errRuns = errors.New("it runs")

// Revive implements database.Cluster. The member sends its position and receives what came after
// it if a donor still has that, else all data. If no member runs, the cluster begins again from
// this one, which is refused if another is ahead.
//
// The running members may be no majority, and lack writes that were acknowledged without them:
//
//  1. n1 is cut off. n2 and n3 continue, commit a write at position 5 and are killed. n1 is
//     at position 3 when it returns.
//  2. n2 is revived. If n1 were made primary alone (pc.bootstrap), its next transactions would
//     also be 4 and 5. n2 would receive what comes after 5, and the write would be in two
//     members and missing in the third without any error.
//
// So n1 becomes primary only if no halted member is ahead of it. Otherwise n1, which serves
// nothing, is stopped, the cluster begins from n2, and n1 is revived behind it.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	s, err := c.Member("reviving", node)
	if err != nil {
		return err
	}
	if s.Running() {
		return fmt.Errorf("reviving %s: %w", node.Name(), errRuns)
	}
	running := c.Running()
	err = c.revive(ctx, s)
	if len(running) > 0 && errors.Is(err, ErrBehind) {
		err = c.restartFrom(ctx, s, running)
	}
	if err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) revive(ctx context.Context, s *mysql.Server) error {
	c.ReportProgress("reviving %s", s.Host.Name())
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
	if err := c.awaitServer(ctx, s, joinTimeout, func(ctx context.Context) error { return checkAgreement(ctx, c.Running()) }); err != nil {
		return errors.Join(err, s.Halt(context.WithoutCancel(ctx), database.Abrupt))
	}
	s.MarkMember()
	return nil
}

// restartFrom begins the cluster again from a halted member, and then revives the ones behind it.
func (c *cluster) restartFrom(ctx context.Context, s *mysql.Server, running []*mysql.Server) error {
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
		if err := c.revive(ctx, o); err != nil {
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

// checkMostAdvanced returns nil if no halted member is ahead of a position of the named member.
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
			err := fmt.Errorf("%w: %s has transaction %d, %s only %d", ErrBehind, o.Host.Name(), q.seqno, name, p.seqno)
			return advice.With(err, "revive %s first", o.Host.Name())
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

// AwaitAgreement implements mysql.Group: the servers serve, and count no others. Without a
// primary component they wait for all members of the last one, including lost ones. Once they
// have found each other, they are made primary as an operator would do it, unless a halted member
// is ahead of them all (ErrBehind).
func (c *cluster) AwaitAgreement(ctx context.Context, servers []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, evictTimeout, fmt.Errorf("the others still count it after %v", evictTimeout))
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	var since time.Time // when they were first seen to wait
	var forced error    // of the last attempt to make them primary
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		err := checkAgreement(ctx, servers)
		switch {
		case err == nil:
			return nil
		case !isWaiting(ctx, servers):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > stuckAfter:
			since = time.Time{}
			if forced = c.forcePrimary(ctx, servers); errors.Is(forced, ErrBehind) {
				refuse(forced)
			}
		}
		return errors.Join(err, forced)
	})
}

// forcePrimary makes servers without a primary component one.
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
