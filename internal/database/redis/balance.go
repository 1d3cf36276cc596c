package redis

import (
	"context"
	"errors"
	"fmt"
)

// rebalance gives every master an equal share of the slots, and a leaving one none. It returns the moved bytes, if
// known. The next call continues after a failure.
func (c *cluster) rebalance(ctx context.Context, leaving *member) (int64, error) {
	if c.options.rebalance == rebalanceCLI {
		return 0, c.rebalanceByCLI(ctx, leaving)
	}
	views, err := c.masterViews(ctx)
	if err != nil {
		return 0, err
	}
	owned, stays := make([][]int, len(views)), make([]bool, len(views))
	for i, v := range views {
		for _, r := range v.self.slots {
			for s := r.from; s <= r.to; s++ {
				owned[i] = append(owned[i], s)
			}
		}
		stays[i] = v.member != leaving
	}
	plan := planTransfers(owned, stays)
	var bytes int64
	if c.options.rebalance == rebalanceNative {
		err = c.migrateNatively(ctx, views, plan)
	} else {
		bytes, err = c.executePlan(ctx, views, plan)
	}
	if err != nil {
		return bytes, errors.Join(err, c.repairAfterFailure(ctx))
	}
	return bytes, nil
}

// repairAfterFailure repairs interrupted moves, unless a server has died.
func (c *cluster) repairAfterFailure(ctx context.Context) error {
	if c.Err() != nil {
		return nil // a server died, so a repair cannot succeed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	return c.repair(ctx)
}

type transfer struct {
	from, to int // indices
	slots    []int
}

// planTransfers balances with the fewest moved slots: only the surplus of a master moves. If the
// slots do not divide evenly, the larger shares go to the masters that own most slots. The
// surplus of a master stays together if possible.
func planTransfers(owned [][]int, stays []bool) []transfer {
	total, n := 0, 0
	for i := range owned {
		total += len(owned[i])
		if stays[i] {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	want := make([]int, len(owned))
	for i := range want {
		if stays[i] {
			want[i] = total / n
		}
	}
	for range total % n {
		best := -1
		for i := range want {
			if stays[i] && want[i] == total/n && (best < 0 || len(owned[i]) > len(owned[best])) {
				best = i
			}
		}
		want[best]++
	}
	var moves []transfer
	to := 0
	need := func(i int) int { return want[i] - len(owned[i]) }
	got := 0
	for from := range owned {
		surplus := owned[from][min(want[from], len(owned[from])):]
		for len(surplus) > 0 {
			for need(to)-got <= 0 {
				to, got = to+1, 0
			}
			k := min(len(surplus), need(to)-got)
			moves = append(moves, transfer{from, to, surplus[:k]})
			surplus, got = surplus[k:], got+k
		}
	}
	return moves
}

const cliPipeline = "100"

func (c *cluster) rebalanceByCLI(ctx context.Context, leaving *member) error {
	args := []string{"rebalance", c.others(leaving)[0].addr, "--cluster-pipeline", cliPipeline}
	if leaving == nil {
		args = append(args, "--cluster-use-empty-masters")
	} else {
		v, err := leaving.readView(ctx)
		if err != nil {
			return err
		}
		args = append(args, "--cluster-weight", v.self.id+"=0")
	}
	if err := c.runCLI(ctx, args...); err != nil {
		return errors.Join(err, c.repairAfterFailure(ctx))
	}
	if leaving == nil {
		return nil
	}
	v, err := leaving.readView(ctx)
	if err != nil {
		return err
	}
	if n := v.self.countSlots(); n > 0 {
		return fmt.Errorf("the leaving master still owns %d slots after a rebalance", n)
	}
	return nil
}

// checkByCLI makes redis-cli check the cluster if it has moved the slots.
func (c *cluster) checkByCLI(ctx context.Context) error {
	if c.options.rebalance != rebalanceCLI {
		return nil
	}
	return c.runCLI(ctx, "check", c.runningMembers()[0].addr)
}
