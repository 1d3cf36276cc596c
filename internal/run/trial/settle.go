package trial

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// settleWait bounds how long a cluster may take to say that it serves again: after
	// events, or where it rearranges itself between two trials that share it.
	settleWait = 2 * time.Minute
	settlePoll = 100 * time.Millisecond
)

// settled returns when every member says that the cluster serves.
func (g *ground) settled(ctx context.Context) error {
	asking, stop := context.WithTimeout(ctx, settleWait)
	defer stop()
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		err := g.cluster.Ready(asking)
		if err == nil {
			return nil
		}
		select {
		case <-g.cluster.Failed():
			return errors.Join(fmt.Errorf("%s does not serve: %w", g.database, err), g.cluster.Err())
		case <-asking.Done():
			return fmt.Errorf("waiting for %s to serve: %w", g.database, errors.Join(asking.Err(), err))
		case <-tick.C:
		}
	}
}
