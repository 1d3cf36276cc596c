package consensus

import (
	"errors"

	"fmt"
	"skerry/internal/base/linger"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
)

type request struct {
	write   *raftpb.Message // MsgStorageAppend
	conf    *wal.Conf
	compact uint64
	rotate  time.Time
}

// store writes the log in order: any number of writes, then one sync, then the responses may be sent.
type store struct{ log *wal.Log }

// write carries a request out, without the sync. It may be repeated after an error.
func (s store) write(r request) error {
	switch {
	case r.conf != nil:
		return s.log.SetConf(*r.conf)
	case r.compact != 0:
		return s.log.Compact(r.compact)
	case !r.rotate.IsZero():
		return s.log.Rotate(r.rotate)
	case r.write == nil:
		return nil
	}
	m := r.write
	var hs *raftpb.HardState
	if m.Term != nil || m.Vote != nil || m.Commit != nil {
		hs = &raftpb.HardState{Term: new(m.GetTerm()), Vote: new(m.GetVote()), Commit: new(m.GetCommit())}
	}
	snap := m.GetSnapshot()
	if snap == nil {
		return s.log.Append(hs, m.GetEntries())
	}
	// The term comes first: a log has no entries of a later term. The commit comes last: it is never past the log's end.
	if hs != nil {
		first := &raftpb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: new(s.log.HardState().GetCommit())}
		if err := s.log.Append(first, nil); err != nil {
			return err
		}
	}
	at := snap.GetMetadata()
	if err := s.log.Reset(at.GetIndex(), at.GetTerm(), wal.Conf{Index: at.GetIndex(), Data: snap.GetData()}); err != nil {
		return fmt.Errorf("replacing the log at %d: %w", at.GetIndex(), err)
	}
	return s.log.Append(hs, m.GetEntries())
}

func (r request) mustSync() bool { return len(r.write.GetResponses()) > 0 }

const storageRetry = 300 * time.Millisecond

// writeLog writes all waiting requests, syncs once, and sends responses. Requests wait while the log cannot be written.
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

func (n *Node) writeAll(st store, queue []request) (int, error) {
	sync := false
	var failed error
	done := 0
	for _, r := range queue {
		err := st.write(r)
		if err != nil && r.write == nil && r.conf == nil && !errors.Is(err, wal.ErrSync) {
			n.logger.Warn("compacting the log failed", "err", err)
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

// compactFirst frees space on a full disk before anything else.
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
			n.logger.Warn("compacting the log failed", "err", err)
		}
	}
	return rest
}
