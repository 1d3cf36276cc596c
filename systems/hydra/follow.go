package hydra

import (
	"context"
	"time"
)

// follow watches another member apply, and returns when it is this one's turn.
func (n *Node) follow(ctx context.Context) error {
	stood, last := time.Now(), n.progress.at()
	var heeded time.Time
	for {
		holder, err := n.look(ctx)
		if err != nil {
			return err
		}
		n.healed()
		now := n.progress.at()
		if now != last || now >= n.log.Commit() {
			stood, last = time.Now(), now
		}
		still := time.Since(stood)
		if still > takeover || still > abandoned && n.away(holder) || !n.shared() {
			n.Log.Info("taking over the cloud's database", "applied", now)
			n.lead.Store(true)
			return nil
		}
		if heeded, err = n.news(ctx, holder, heeded); err != nil {
			return err
		}
	}
}

// news waits until there is a reason to look at the database: who applies has told of something
// that somebody waits for, or it is time. heeded is when that one was asked to tell.
//
// What was told while nobody waited is kept in mind:
//
//  1. who applies tells of entry 7, and nobody waits here;
//  2. a read begins that waits for 7. There is no batch after it that would be told of.
func (n *Node) news(ctx context.Context, holder string, heeded time.Time) (time.Time, error) {
	idle := time.NewTimer(n.pace.idle)
	defer idle.Stop()
	told := false
	for {
		hears := time.Since(heeded) < heedEvery
		var late <-chan time.Time
		if n.progress.awaited() {
			if !hears && n.log.Heed(n.member(holder)) {
				heeded = time.Now()
			}
			late = time.After(n.pace.busy)
		}
		select {
		case <-ctx.Done():
			return heeded, ctx.Err()
		case <-n.log.Told():
			if told = true; n.progress.awaited() {
				return heeded, nil
			}
		case <-n.progress.asked:
			if told || !hears {
				return heeded, nil
			}
		case <-late:
			return heeded, nil
		case <-idle.C:
			return heeded, nil
		}
	}
}

// member is the identifier of a member, 0 for one that there is not.
func (n *Node) member(name string) uint64 {
	for _, m := range n.log.Members() {
		if m.Name == name {
			return m.ID
		}
	}
	return 0
}
