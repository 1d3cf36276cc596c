package consensus

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// waitFor waits for a change, or for some nanoseconds.
func (n *Node) waitFor(ctx context.Context, changed <-chan struct{}, most int64) error {
	timer := time.NewTimer(time.Duration(most))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.done:
		return n.closed()
	}
	return nil
}

// Status returns the node as it stands. Of a stopped node it tells less.
func (n *Node) Status() Status {
	var s Status
	if !n.call(func() { s = n.status() }) {
		s = Status{Cluster: n.cfg.Cluster, Self: n.Self(), State: "stopped"}
	}
	return s
}

func (n *Node) status() Status {
	m := n.m
	usage := n.log.Usage()
	first, _ := n.log.FirstIndex()
	last, _ := n.log.LastIndex()
	s := Status{
		Cluster: n.cfg.Cluster, Self: n.Self(), Leader: m.lead, Term: m.term,
		State:  strings.ToLower(strings.TrimPrefix(m.state.String(), "State")),
		Commit: m.published.index, Applied: m.keep.applied[m.cfg.id], First: first, Last: last,
		LogBytes: usage.Bytes, Syncs: usage.Syncs, Synced: usage.Synced,
		Election: time.Duration(n.election.Load()), Removed: m.removed,
	}
	if m.state == raft.StatePreCandidate {
		s.State = "pre-candidate"
	}
	if m.storage != nil {
		s.StorageError = m.storage.Error()
	}
	progress := map[uint64]tracker.Progress{}
	if m.isLeader() {
		m.rn.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) { progress[id] = pr })
	}
	for _, o := range n.members() {
		ms := MemberStatus{Member: o, Votes: m.conf.votes(o.ID), Applied: m.keep.applied[o.ID]}
		if pr, ok := progress[o.ID]; ok {
			ms.Match = pr.Match
			ms.Progress = strings.ToLower(strings.TrimPrefix(pr.State.String(), "State"))
		}
		if p := n.tr.peer(o.ID); p != nil {
			p.describe(&ms)
		}
		if o.ID == m.cfg.id {
			ms.Connected = true
		}
		s.Members = append(s.Members, ms)
	}
	return s
}
