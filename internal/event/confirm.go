package event

import (
	"context"
	"slices"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/record"
)

// confirmDelays are the times between the first possible arrival under new settings and each
// reading of the emulator's account.
var confirmDelays = []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// LinkUpdate is a change of link settings that the emulator has applied.
type LinkUpdate struct {
	at      time.Time // when the emulator had the whole change
	changes []directionChange
}

type directionChange struct {
	direction
	number uint64 // sequence number among all changes of the direction
	before link.Quality
	after  link.Quality
}

// TrackAccounts gives Confirm access to the emulator's accounts. It must be called before the first
// change. An emulator that does not see packets confirms nothing.
func (n *LinkLayers) TrackAccounts(ctx context.Context, stats func(context.Context, ...string) ([]link.Stats, error)) error {
	all, err := stats(ctx)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes = map[direction]uint64{}
	for _, s := range all {
		if s.AB.Account.Known {
			n.changes[direction{s.ID, false}] = s.AB.Account.Changes
		}
		if s.BA.Account.Known {
			n.changes[direction{s.ID, true}] = s.BA.Account.Changes
		}
	}
	n.stats = stats
	return nil
}

// countChange counts a change and returns its number, or false if the emulator does not see
// packets. The caller holds mu.
func (n *LinkLayers) countChange(d direction) (uint64, bool) {
	number, ok := n.changes[d]
	if ok {
		number++
		n.changes[d] = number
	}
	return number, ok
}

// Confirm waits until the emulator has observed packets that obey an update, at most 200 ms after
// the first ones can arrive. It returns nil if there was no update, the emulator does not see
// packets, or ctx ended. zero is the start of the measurement.
func (n *LinkLayers) Confirm(ctx context.Context, zero time.Time, u LinkUpdate) *record.Observed {
	if len(u.changes) == 0 {
		return nil
	}
	open := slices.Clone(u.changes)
	seen := &record.Observed{Set: momentSince(zero, u.at), Directions: int64(len(open))}
	// Packets in flight at the change arrive within this time. They prove nothing about the new
	// settings.
	var flight time.Duration
	var ids []string
	for _, m := range open {
		flight = max(flight, longestDelay(m.before), longestDelay(m.after))
		ids = append(ids, m.id)
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var first map[direction]link.Account
	for i, after := range confirmDelays {
		if linger.For(ctx, time.Until(u.at.Add(flight+after))) != nil {
			return nil
		}
		stats, err := n.stats(ctx, ids...)
		if err != nil {
			return nil // the sampler meets the same error and ends the trial
		}
		now := accountsByDirection(stats)
		if first == nil {
			first = now
		}
		read := momentSince(zero, time.Now())
		last := i == len(confirmDelays)-1
		open = slices.DeleteFunc(open, func(m directionChange) bool {
			a := now[m.direction]
			crossed := a.Packets - first[m.direction].Packets
			switch {
			case a.Confirmed == m.number:
				seen.Confirmed++
				seen.InEffect = &read
			case a.Changes > m.number:
				seen.Superseded++
			case last && crossed == 0:
				seen.NoPacket++
			case last:
				seen.Unconfirmed = append(seen.Unconfirmed,
					record.Unconfirmed{Link: m.id, Back: m.back, AtS: u.at.Sub(zero).Seconds(), Packets: int64(crossed)})
			default:
				return false
			}
			return true
		})
		if len(open) == 0 {
			break
		}
	}
	return seen
}

func longestDelay(q link.Quality) time.Duration {
	return q.Latency + time.Duration(link.JitterReach*float64(q.Jitter))
}

func accountsByDirection(stats []link.Stats) map[direction]link.Account {
	all := make(map[direction]link.Account, 2*len(stats))
	for _, s := range stats {
		all[direction{s.ID, false}], all[direction{s.ID, true}] = s.AB.Account, s.BA.Account
	}
	return all
}

func momentSince(zero, at time.Time) record.Moment {
	return record.Moment{NS: int64(at.Sub(zero)), Wall: at}
}
