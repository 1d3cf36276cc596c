package consensus

import (
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/linger"
	"skerry/systems/consensus/wal"
)

// storageRetry is how long a log that cannot be written is left alone.
const storageRetry = 300 * time.Millisecond

// writeLog carries out requests to the store: all that wait are written, synced once, and
// answered. While the log cannot be written they wait.
func (n *Node) writeLog() {
	st := store{n.log}
	var failing error
	var queue []request
	for {
		n.store.Lock()
		queue = append(queue, n.store.queue...)
		n.store.queue = nil
		n.store.Unlock()
		if len(queue) == 0 {
			select {
			case <-n.ctx.Done():
				return
			case <-n.store.wake:
			}
			continue
		}
		if failing != nil {
			queue = n.compactFirst(st, queue)
		}
		done, err := n.writeAll(st, queue)
		if done > 0 || err == nil {
			if failing != nil && err == nil {
				n.post(func() { n.m.setStorageError(nil) })
				failing = nil
			}
			n.sendResponses(queue[:done])
			queue = append([]request(nil), queue[done:]...)
		}
		if err == nil {
			continue
		}
		if failing == nil || failing.Error() != err.Error() {
			failing = err
			n.post(func() { n.m.setStorageError(err) })
		}
		if linger.For(n.ctx, storageRetry) != nil {
			return
		}
	}
}

// writeAll writes and syncs requests up to the first that fails, and returns how many of
// them are durable.
func (n *Node) writeAll(st store, queue []request) (int, error) {
	sync := false
	var failed error
	done := 0
	for _, r := range queue {
		err := st.write(r)
		if err != nil && r.write == nil && r.conf == nil && !errors.Is(err, wal.ErrSync) {
			n.logger.Warn("upkeep of the log failed", "err", err)
			err = nil
		}
		if err != nil {
			failed = fmt.Errorf("%w: %w", ErrStorage, err)
			break
		}
		sync = sync || r.mustSync()
		done++
	}
	if sync {
		if err := n.log.Sync(); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrStorage, err)
		}
	}
	return done, failed
}

// sendResponses lets raft, here and at other members, know what is durable.
func (n *Node) sendResponses(done []request) {
	var own []request
	lost := false
	for _, r := range done {
		for _, resp := range r.write.GetResponses() {
			if resp.GetTo() == n.cfg.Self.ID {
				own = append(own, r)
				break
			}
		}
		for _, resp := range r.write.GetResponses() {
			if resp.GetTo() != n.cfg.Self.ID {
				lost = !n.tr.send(message{to: resp.GetTo(), raft: resp}) || lost
			}
		}
	}
	n.tr.flushAll()
	if lost {
		n.post(n.m.acks.reset)
	}
	if len(own) == 0 {
		return
	}
	n.post(func() {
		for _, r := range own {
			for _, resp := range r.write.GetResponses() {
				if resp.GetTo() == n.cfg.Self.ID {
					n.m.step(resp)
				}
			}
		}
	})
}

// compactFirst makes room on a full disk before anything else.
func (n *Node) compactFirst(st store, queue []request) []request {
	var rest []request
	for _, r := range queue {
		if r.compact == 0 {
			if r.rotate.IsZero() {
				rest = append(rest, r)
			}
			continue
		}
		if err := st.write(r); err != nil {
			n.logger.Warn("upkeep of the log failed", "err", err)
		}
	}
	return rest
}
