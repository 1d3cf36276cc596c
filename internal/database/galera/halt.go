package galera

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// ErrBehind says that a cluster is not to be begun from a member: another one has more.
var ErrBehind = errors.New("another member has later transactions")

// errRuns says that a member was not halted.
var errRuns = errors.New("it runs")

// Revive implements database.Cluster. The member names its position, and is sent what
// came after it where a donor still has that, else everything. When no member runs, the
// cluster begins anew from this one, which is refused if another was ahead of it.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	s, err := c.Member("reviving", node)
	if err != nil {
		return err
	}
	if err := c.revive(ctx, s); err != nil {
		return fmt.Errorf("reviving %s: %w", node.Name(), err)
	}
	return nil
}

func (c *cluster) revive(ctx context.Context, s *mysql.Server) error {
	if s.Running() {
		return errRuns
	}
	c.Say("reviving %s", s.Host.Name())
	p, err := c.position(ctx, s)
	if err != nil {
		return err
	}
	args := []string{fmt.Sprintf("--wsrep-start-position=%s:%d", p.history, p.seqno)}
	if len(c.Running()) == 0 {
		if err := c.bootstrap(ctx, s, p); err != nil {
			return err
		}
		args = append(args, "--wsrep-new-cluster")
	} else if err := c.rejoin(ctx, s); err != nil {
		return err
	}
	if err := c.launch(ctx, s, args...); err != nil {
		return err
	}
	s.OnTrial()
	if err := c.until(ctx, s, joinTimeout, func(ctx context.Context) error { return agree(ctx, c.Running()) }); err != nil {
		return errors.Join(err, s.Halt(context.WithoutCancel(ctx), true))
	}
	s.Stays()
	return nil
}

// bootstrap lets a cluster begin from a member: it was the last to leave, or none of the
// others, which do not run either, is ahead.
func (c *cluster) bootstrap(ctx context.Context, s *mysql.Server, p position) error {
	if !p.safe {
		for _, o := range c.All() {
			if o == s {
				continue
			}
			q, err := c.position(ctx, o)
			if err != nil {
				return err
			}
			if q.history == p.history && q.seqno > p.seqno {
				err := fmt.Errorf("%w: %s has transaction %d, %s only %d", ErrBehind, o.Host.Name(), q.seqno, s.Host.Name(), p.seqno)
				return advice.With(err, "revive %s first", o.Host.Name())
			}
		}
	}
	p.safe = true
	if err := files.WriteText(ctx, s.Host.Files(), stateFile(s), p.text()); err != nil {
		return fmt.Errorf("marking it as the first: %w", err)
	}
	return forget(ctx, s)
}

// rejoin prepares a member's return to those that run. These first have to give up the
// process that was killed: two of one member at the same time cost them their majority.
func (c *cluster) rejoin(ctx context.Context, s *mysql.Server) error {
	if err := c.Settle(ctx, c.Running()); err != nil {
		return err
	}
	return forget(ctx, s)
}

// Settle implements mysql.Equals: servers serve, and count nobody else. Once they are no primary
// component they wait for all that were in the last one, those that were lost too: when
// they have found each other they are told to go on alone, as an operator would tell them.
func (c *cluster) Settle(ctx context.Context, servers []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, evictTimeout, fmt.Errorf("the others still count it after %v", evictTimeout))
	defer cancel()
	var since time.Time // when they were first seen to wait
	return c.Set.Await(ctx, func(ctx context.Context) error {
		err := agree(ctx, servers)
		switch {
		case err == nil:
			return nil
		case !waiting(ctx, servers):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > stuckAfter:
			since = time.Time{}
			c.Say("the members that run are no majority: making them the cluster (pc.bootstrap)")
			if e := servers[0].Exec(ctx, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'"); e != nil {
				return errors.Join(err, e)
			}
		}
		return err
	})
}

// stuckAfter is how long members get to become a primary component by themselves.
const stuckAfter = 5 * time.Second

// waiting tells whether servers are one component together, which is not primary.
func waiting(ctx context.Context, servers []*mysql.Server) bool {
	for _, s := range servers {
		st, err := ask(ctx, s)
		if err != nil || st.Cluster == primary || st.Size != len(servers) {
			return false
		}
	}
	return true
}

// forget removes a member's last view, which would have it wait for those that were in it.
func forget(ctx context.Context, s *mysql.Server) error {
	if err := s.Host.Files().Remove(ctx, filepath.Join(s.Data(), "gvwstate.dat")); err != nil {
		return fmt.Errorf("removing its last view: %w", err)
	}
	return nil
}
