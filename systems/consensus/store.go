package consensus

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"skerry/systems/consensus/wal"
)

// request is something for the store to do; one field is set.
type request struct {
	write   *raftpb.Message // MsgStorageAppend
	conf    *wal.Conf
	compact uint64
	rotate  time.Time
}

// store writes the log. Requests are carried out in their order: any number of them
// with write, then one sync, then the answers in writes' Responses may go out.
type store struct{ log *wal.Log }

// write carries a request out but for the sync. After an error it may be tried again.
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
	// The term comes first, since a log must not have entries of a later term than its own,
	// and the commit last, since it must not be past the log's end.
	if hs != nil {
		first := &raftpb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: new(s.log.HardState().GetCommit())}
		if err := s.log.Append(first, nil); err != nil {
			return err
		}
	}
	at := snap.GetMetadata()
	if err := s.log.Reset(at.GetIndex(), at.GetTerm(), wal.Conf{Index: at.GetIndex(), Data: snap.GetData()}); err != nil {
		return fmt.Errorf("beginning the log anew at %d: %w", at.GetIndex(), err)
	}
	return s.log.Append(hs, m.GetEntries())
}

// mustSync tells whether the answers of a request depend on its being durable.
func (r request) mustSync() bool { return len(r.write.GetResponses()) > 0 }
