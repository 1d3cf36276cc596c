package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database/daemon"
)

// errStuck means that a slot cannot be repaired while a member is halted.
var errStuck = errors.New("a slot is moving to a halted member")

var errMoved = errors.New("a slot has moved during the repair")

// repair ends every interrupted move:
//
//	owner                other                 repair
//	MIGRATING            IMPORTING from it     clients are already redirected: the remaining
//	                                           keys are sent, the other becomes the owner
//	-                    IMPORTING from it     copies, which no client has seen, are removed
//	-                    IMPORTING from a      the source was lost and replaced: the owner
//	                     third                 gets the records that it lacks
//	MIGRATING            has records of it     the claim was interrupted: as the first case
//	MIGRATING            -                     the other never imported it, or has left:
//	                                           the slot stays
//	(it is the other)    MIGRATING             the old owner gets the new owner's id
//
// It first ends the connections of earlier changes.
func (c *cluster) repair(ctx context.Context) error {
	if err := c.killChangers(ctx); err != nil {
		return err
	}
	for {
		err := c.repairOnce(ctx)
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return err
		}
	}
}

func (c *cluster) repairOnce(ctx context.Context) error {
	for _, phase := range []func(repairer, context.Context, view, *goredis.Client) error{repairer.repairMigrating, repairer.repairImporting} {
		views, err := c.readViews(ctx)
		if err != nil {
			return fmt.Errorf("finding moving slots: %w", err)
		}
		f := repairer{kind: c.kind, byID: make(map[string]view), away: c.haltedMembers()}
		for _, v := range views {
			f.byID[v.self.id] = v
			for _, r := range v.self.slots {
				for s := r.from; s <= r.to; s++ {
					f.owner[s] = v
				}
			}
		}
		open := slices.DeleteFunc(views, func(v view) bool { return v.self.countMoves() == 0 })
		if len(open) == 0 {
			return nil
		}
		if err := c.awaitEpochs(ctx); err != nil {
			return err
		}
		err = daemon.ForEach(ctx, open, func(ctx context.Context, _ int, v view) error {
			here := v.openChanger(v.host)
			defer here.Close()
			if err := phase(f, ctx, v, here); err != nil {
				return fmt.Errorf("repairing moving slots at %s: %w", v.host.Name(), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// killChangers ends the connections of abandoned changes, whose late commands could undo a repair.
func (c *cluster) killChangers(ctx context.Context) error {
	return daemon.ForEach(ctx, c.runningMembers(), func(ctx context.Context, _ int, m *member) error {
		list, err := m.admin.ClientList(ctx).Result()
		if err != nil {
			return fmt.Errorf("listing the connections of %s: %w", m.host.Name(), err)
		}
		for _, id := range parseChangers(list) {
			if err := m.admin.ClientKillByFilter(ctx, "ID", id).Err(); err != nil {
				return fmt.Errorf("ending a connection of %s: %w", m.host.Name(), err)
			}
		}
		return nil
	})
}

// parseChangers returns the ids of changers in a reply to CLIENT LIST: "id=7 addr=... name=...".
func parseChangers(list string) (ids []string) {
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

type repairer struct {
	kind  kind
	owner [slots]view // by the owners' own views; without a member if unowned
	byID  map[string]view
	away  []*member
}

func (f repairer) repairMigrating(ctx context.Context, v view, here *goredis.Client) error {
	var stay []int
	// Slots by the id of their new owner.
	gone, going, doubt := make(map[string][]int), make(map[string][]int), make(map[string][]int)
	for _, slot := range slices.Sorted(maps.Keys(v.self.migrating)) {
		id := v.self.migrating[slot]
		to, there := f.byID[id]
		switch owner := f.owner[slot]; {
		case owner.member != nil && owner.self.id != v.self.id:
			gone[owner.self.id] = append(gone[owner.self.id], slot)
		case there && to.self.importing[slot] == v.self.id:
			going[id] = append(going[id], slot)
		case there:
			doubt[id] = append(doubt[id], slot)
		case f.isAway(v, id):
			return errStuck
		default:
			stay = append(stay, slot)
		}
	}
	for id, list := range doubt {
		claimed, err := f.findHalfClaimed(ctx, v, f.byID[id], list)
		if err != nil {
			return err
		}
		going[id] = append(going[id], claimed...)
		stay = append(stay, slices.DeleteFunc(list, func(s int) bool { return slices.Contains(claimed, s) })...)
	}
	err := setSlotState(ctx, here, stay, "STABLE")
	for id, list := range gone {
		err = errors.Join(err, setSlotState(ctx, here, list, "NODE", id))
	}
	for id, list := range going {
		err = errors.Join(err, f.completeMove(ctx, v, here, f.byID[id], list))
	}
	return err
}

// findHalfClaimed returns the slots that another node has records of but does not import: its claim was interrupted
// between STABLE and NODE. It sets them to IMPORTING.
func (f repairer) findHalfClaimed(ctx context.Context, v, to view, list []int) ([]int, error) {
	there := to.openChanger(v.host)
	defer there.Close()
	full, err := filterOccupied(ctx, there, list)
	if err != nil {
		return nil, err
	}
	err = setSlotState(ctx, there, full, "IMPORTING", v.self.id)
	if err != nil && strings.Contains(err.Error(), ownsAlready) {
		err = fmt.Errorf("%w: %w", errMoved, err)
	}
	return full, err
}

const ownsAlready = "I'm already the owner of hash slot"

// completeMove sends the remaining keys of slots and makes the other node their owner.
func (f repairer) completeMove(ctx context.Context, v view, here *goredis.Client, to view, list []int) error {
	full, err := filterOccupied(ctx, here, list)
	if err != nil {
		return err
	}
	for _, slot := range full {
		for {
			keys, _, err := readMigrateKeys(ctx, here, slot)
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
	}
	there := to.openChanger(v.host)
	defer there.Close()
	if err := claimSlots(ctx, there, list, to.self.id, f.kind.claimsAtOnce(to)); err != nil {
		return err
	}
	return setSlotState(ctx, here, list, "NODE", to.self.id)
}

func filterOccupied(ctx context.Context, at *goredis.Client, list []int) (full []int, err error) {
	pipe := at.Pipeline()
	counts := make([]*goredis.IntCmd, len(list))
	for i, slot := range list {
		counts[i] = pipe.ClusterCountKeysInSlot(ctx, slot)
	}
	if len(list) > 0 {
		_, err = pipe.Exec(ctx)
	}
	for i, n := range counts {
		if n.Val() > 0 {
			full = append(full, list[i])
		}
	}
	return full, err
}

func (f repairer) isAway(v view, id string) bool {
	for _, p := range v.peers {
		for _, m := range f.away {
			if p.id == id && p.addr == m.addr {
				return true
			}
		}
	}
	return false
}

// repairImporting repairs the slots that a node reports as IMPORTING and no owner as MIGRATING.
func (f repairer) repairImporting(ctx context.Context, v view, here *goredis.Client) error {
	open := slices.Sorted(maps.Keys(v.self.importing))
	full, err := filterOccupied(ctx, here, open)
	if err != nil {
		return err
	}
	for _, slot := range full {
		owner := f.owner[slot]
		if owner.member == nil {
			return fmt.Errorf("%w: slot %d has no running owner", errStuck, slot)
		}
		if owner.self.id == v.self.id {
			continue
		}
		replaced := owner.self.id != v.self.importing[slot]
		if err := clearCopies(ctx, here, slot, owner, replaced); err != nil {
			return err
		}
	}
	return setSlotState(ctx, here, open, "STABLE")
}

// clearCopies removes a slot's copies. If their source was replaced, the owner first gets the records that it lacks.
func clearCopies(ctx context.Context, here *goredis.Client, slot int, owner view, replaced bool) error {
	for {
		keys, err := here.ClusterGetKeysInSlot(ctx, slot, migrateKeys).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		pipe := here.Pipeline()
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
			pipe.Do(ctx, "ASKING")
			pipe.Del(ctx, key)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
}
