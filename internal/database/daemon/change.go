package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// ChangeTimer measures one change of membership, from the request on.
type ChangeTimer struct {
	began  time.Time
	change database.Change
}

// Began is when the change began.
func (t *ChangeTimer) Began() time.Time { return t.began }

// Accept records that the database has accepted the change. Later calls have no effect.
func (t *ChangeTimer) Accept() {
	if t.change.Accepted == 0 {
		t.change.Accepted = time.Since(t.began)
	}
}

// Moved records how many bytes the change has moved.
func (t *ChangeTimer) Moved(bytes int64) { t.change.Bytes = bytes }

// Complete records that the change is complete. Later calls have no effect.
func (t *ChangeTimer) Complete() {
	if t.change.Complete == 0 {
		t.change.Complete = time.Since(t.began)
	}
}

// JoinSteps is how a node becomes a member. Check and Undo may be nil.
type JoinSteps struct {
	// Timeout bounds Join, if positive.
	Timeout time.Duration
	// Check returns an error if the node cannot join. Nothing has changed yet.
	Check func(ctx context.Context) error
	// Join makes the node a member. It calls timer.Accept.
	Join func(ctx context.Context, timer *ChangeTimer) error
	// Undo removes what a failed Join left behind. Its context outlives the caller's.
	Undo func(ctx context.Context) error
}

// RunJoin implements database.Cluster's Join with the steps of a database.
func (c *Cluster[M]) RunJoin(ctx context.Context, node host.Host, s JoinSteps) (database.Change, error) {
	timer := &ChangeTimer{}
	fail := func(err error) (database.Change, error) {
		return timer.change, fmt.Errorf("joining %s: %w", node.Name(), err)
	}
	release, err := c.Vacant(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	if s.Check != nil {
		if err := s.Check(ctx); err != nil {
			return fail(err)
		}
	}
	ctx, cancel := boundChange(ctx, s.Timeout)
	defer cancel()
	c.ReportProgress("%s is joining", node.Name())
	timer.began = time.Now()
	if err := s.Join(ctx, timer); err != nil {
		if s.Undo != nil {
			err = errors.Join(err, s.Undo(context.WithoutCancel(ctx)))
		}
		return fail(err)
	}
	timer.Complete()
	return timer.change, nil
}

// LeaveSteps is how the member on a node ceases to be one.
type LeaveSteps[M Member] struct {
	// Timeout bounds Check and Leave, if positive.
	Timeout time.Duration
	// Check returns an error if the member cannot leave. Nothing has changed yet.
	Check func(ctx context.Context, m M) error
	// Leave ends the membership. It calls timer.Accept.
	Leave func(ctx context.Context, m M, timer *ChangeTimer) error
}

// RunLeave implements database.Cluster's Leave with the steps of a database.
func (c *Cluster[M]) RunLeave(ctx context.Context, node host.Host, s LeaveSteps[M]) (database.Change, error) {
	timer := &ChangeTimer{}
	fail := func(err error) (database.Change, error) {
		return timer.change, fmt.Errorf("%s leaving: %w", node.Name(), err)
	}
	m, release, err := c.Hold(node.Name())
	if err != nil {
		return fail(err)
	}
	defer release()
	ctx, cancel := boundChange(ctx, s.Timeout)
	defer cancel()
	if err := s.Check(ctx, m); err != nil {
		return fail(err)
	}
	c.ReportProgress("%s is leaving", node.Name())
	timer.began = time.Now()
	if err := s.Leave(ctx, m, timer); err != nil {
		return fail(err)
	}
	timer.Complete()
	return timer.change, nil
}

// boundChange bounds ctx by a timeout, if that is positive.
func boundChange(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %v", timeout))
}

// RunHalt implements database.Cluster's Halt. End ends the processes of the member on a node.
func (c *Cluster[M]) RunHalt(ctx context.Context, node host.Host, end func(ctx context.Context, m M) error) error {
	return c.whileHeld(ctx, "halting", node, end)
}

// RunRevive implements database.Cluster's Revive. Start starts a halted member again and waits until it serves.
func (c *Cluster[M]) RunRevive(ctx context.Context, node host.Host, start func(ctx context.Context, m M) error) error {
	return c.whileHeld(ctx, "reviving", node, start)
}

func (c *Cluster[M]) whileHeld(ctx context.Context, what string, node host.Host, do func(ctx context.Context, m M) error) error {
	m, release, err := c.Hold(node.Name())
	if err == nil {
		defer release()
		err = do(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, node.Name(), err)
	}
	return nil
}

// errOldVersion means that a server reports another version than its installation has.
var errOldVersion = errors.New("the server reports another version")

// installations are those of members after the first upgrade.
type installations struct {
	mu     sync.Mutex
	byNode map[string]database.Installation
	latest database.Installation
}

// Installation returns what the member on a node runs. A node that joins after an upgrade runs the
// latest one, since a cluster may refuse older servers then.
func (c *Cluster[M]) Installation(node string) database.Installation {
	in := &c.installed
	in.mu.Lock()
	defer in.mu.Unlock()
	if own, ok := in.byNode[node]; ok {
		return own
	}
	if in.byNode == nil {
		return c.Env.Installation
	}
	return in.latest
}

func (c *Cluster[M]) setInstallation(node string, to database.Installation) {
	in := &c.installed
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.byNode == nil {
		in.byNode = map[string]database.Installation{}
		for _, m := range c.All() {
			in.byNode[m.Name()] = c.Env.Installation
		}
	}
	in.byNode[node], in.latest = to, to
}

// UpgradeOrder implements database.UpgradableCluster: the given order.
func (c *Cluster[M]) UpgradeOrder(_ context.Context, nodes []string) ([]string, error) {
	return nodes, nil
}

// RunUpgrade implements database.UpgradableCluster's Upgrade. Cluster is c with the Halt and Revive
// of its database, which start the programs of Installation. Yield makes others take over before the
// member ends; it is nil if Halt does so. Version returns the version that the member reports.
//
// A member that does not start with the new programs is not started with the old ones: the new
// programs may have changed its data.
func (c *Cluster[M]) RunUpgrade(ctx context.Context, cluster database.Cluster, node host.Host, to database.Installation,
	yield func(ctx context.Context, m M) error, version func(ctx context.Context, m M) (string, error),
) (database.Change, error) {
	timer := &ChangeTimer{began: time.Now()}
	run := func(m M) error {
		if yield != nil {
			if err := yield(ctx, m); err != nil {
				return err
			}
		}
		if err := cluster.Halt(ctx, node, database.Graceful); err != nil {
			return err
		}
		timer.Accept()
		c.setInstallation(node.Name(), to)
		if err := cluster.Revive(ctx, node); err != nil {
			return err
		}
		v, err := version(ctx, m)
		if err == nil && v != to.Version {
			err = fmt.Errorf("%w: %s", errOldVersion, v)
		}
		return err
	}
	c.ReportProgress("upgrading %s from %s to %s", node.Name(), c.Installation(node.Name()).Version, to.Version)
	err := database.ErrNotMember
	if m := c.On(node.Name()); m != *new(M) {
		err = run(m)
	}
	if err != nil {
		return timer.change, fmt.Errorf("upgrading %s to %s %s: %w", node.Name(), to.Database, to.Version, err)
	}
	timer.Complete()
	return timer.change, nil
}
