package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// errStuck says that a slot cannot be repaired while a member is away.
var errStuck = errors.New("a slot is on its way to a node that is away")

// repair ends every move that was interrupted:
//
//	owner                other                 what is done
//	MIGRATING            IMPORTING from it     what the owner still has is sent, the
//	                                           other becomes the owner: clients have been
//	                                           sent on already
//	-                    IMPORTING from it     copies that nobody has seen are removed
//	-                    IMPORTING from a      the source was lost and replaced: what
//	                     third                 the owner lacks is given to it
//	MIGRATING            -                     the other never heard of it, or is no
//	                                           member any more: it stays where it is
//	(it is the other)    MIGRATING             the old owner is told
//
// What an earlier change may still have under way is ended first.
func (c *cluster) repair(ctx context.Context) error {
	if err := c.fence(ctx); err != nil {
		return err
	}
	views, err := c.lookAll(ctx)
	if err != nil {
		return fmt.Errorf("looking for slots on the move: %w", err)
	}
	byID := make(map[string]view)
	for _, v := range views {
		byID[v.self.id] = v
	}
	owner := make(map[int]view)
	for _, v := range views {
		for _, r := range v.self.slots {
			for s := r.from; s <= r.to; s++ {
				owner[s] = v
			}
		}
	}
	fix := fixer{owner: owner, byID: byID, away: c.halted()}
	for _, v := range views {
		for _, slot := range slices.Sorted(maps.Keys(v.self.migrating)) {
			if err := fix.leaving(ctx, v, slot); err != nil {
				return fmt.Errorf("repairing slot %d: %w", slot, err)
			}
		}
	}
	for _, v := range views {
		for _, slot := range slices.Sorted(maps.Keys(v.self.importing)) {
			if err := fix.arriving(ctx, v, slot); err != nil {
				return fmt.Errorf("repairing slot %d: %w", slot, err)
			}
		}
	}
	return nil
}

// fence ends the connections of changes that were given up. What they had sent could
// otherwise arrive after a repair, and hand a slot over of which the copies are gone.
func (c *cluster) fence(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range c.running() {
		g.Go(func() error {
			list, err := m.admin.ClientList(gctx).Result()
			if err != nil {
				return fmt.Errorf("listing the connections of %s: %w", m.host.Name(), err)
			}
			for _, id := range changers(list) {
				if err := m.admin.ClientKillByFilter(gctx, "ID", id).Err(); err != nil {
					return fmt.Errorf("ending a connection of %s: %w", m.host.Name(), err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// changers finds the ids of changers in a reply to CLIENT LIST: "id=7 addr=... name=...".
func changers(list string) (ids []string) {
	for line := range strings.Lines(list) {
		id := ""
		for _, f := range strings.Fields(line) {
			if v, ok := strings.CutPrefix(f, "id="); ok {
				id = v
			}
			if f == "name="+changer {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

type fixer struct {
	owner map[int]view
	byID  map[string]view
	away  []*member
}

// leaving repairs a slot that a node calls MIGRATING.
func (f fixer) leaving(ctx context.Context, v view, slot int) error {
	here := v.client(v.host)
	defer here.Close()
	to, there := f.byID[v.self.migrating[slot]]
	owner, owned := f.owner[slot]
	switch {
	case owned && owner.self.id != v.self.id:
		return setSlots(ctx, here, []int{slot}, "NODE", owner.self.id)
	case !there && f.isAway(v, v.self.migrating[slot]):
		return errStuck
	case !there || to.self.importing[slot] != v.self.id:
		return setSlots(ctx, here, []int{slot}, "STABLE")
	}
	target := to.client(v.host)
	defer target.Close()
	for {
		keys, _, err := someKeys(ctx, here, slot)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := migrateTo(ctx, here, to.member, keys, "REPLACE"); err != nil {
			return err
		}
	}
	for _, at := range []*goredis.Client{target, here} {
		if err := setSlots(ctx, at, []int{slot}, "NODE", to.self.id); err != nil {
			return err
		}
	}
	delete(to.self.importing, slot)
	f.owner[slot] = to
	return nil
}

// isAway tells whether an id is that of a member that is halted.
func (f fixer) isAway(v view, id string) bool {
	for _, p := range v.peers {
		for _, m := range f.away {
			if p.id == id && p.addr == m.addr {
				return true
			}
		}
	}
	return false
}

// arriving repairs a slot that a node calls IMPORTING and no owner calls MIGRATING.
func (f fixer) arriving(ctx context.Context, v view, slot int) error {
	here := v.client(v.host)
	defer here.Close()
	owner, owned := f.owner[slot]
	if !owned {
		return fmt.Errorf("%w: it has no owner that is there", errStuck)
	}
	if owner.self.id != v.self.id {
		replaced := owner.self.id != v.self.importing[slot]
		if err := clearCopies(ctx, here, slot, owner, replaced); err != nil {
			return err
		}
	}
	return setSlots(ctx, here, []int{slot}, "STABLE")
}

// clearCopies removes a slot's copies. Where their source was replaced, those that the owner
// lacks are sent to it: it may have been handed over already.
func clearCopies(ctx context.Context, here *goredis.Client, slot int, owner view, replaced bool) error {
	for {
		keys, err := here.ClusterGetKeysInSlot(ctx, slot, migrateKeys).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if replaced {
				err := migrateTo(ctx, here, owner.member, []string{key})
				if err == nil {
					continue
				}
				if !strings.Contains(err.Error(), "BUSYKEY") {
					return err
				}
			}
			pipe := here.Pipeline()
			pipe.Do(ctx, "ASKING")
			pipe.Del(ctx, key)
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
		}
	}
}
