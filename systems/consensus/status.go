package consensus

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

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

// Status returns the status of the node. The status of a stopped node is incomplete.
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
		Cluster: n.cfg.Cluster, Self: n.Self(), Leader: m.leaderID, Term: m.term,
		State:  strings.ToLower(strings.TrimPrefix(m.role.String(), "State")),
		Commit: m.published.index, Applied: m.compaction.applied[m.cfg.id], First: first, Last: last,
		LogBytes: usage.Bytes, Syncs: usage.Syncs, Synced: usage.Synced,
		Election: time.Duration(n.election.Load()), Removed: m.membership.removed,
	}
	if m.role == raft.StatePreCandidate {
		s.State = "pre-candidate"
	}
	if m.space.err != nil {
		s.StorageError = m.space.err.Error()
	}
	progress := map[uint64]tracker.Progress{}
	if m.isLeader() {
		m.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) { progress[id] = pr })
	}
	for _, o := range n.members() {
		ms := MemberStatus{Member: o, Votes: m.membership.conf.votes(o.ID), Applied: m.compaction.applied[o.ID]}
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

// raftLogger is the log of the raft library, whose routine messages are at debug level. As the library expects, it panics
// if an invariant of raft is broken. The driver then stops the node.
type raftLogger struct{ *slog.Logger }

type broken struct{ why string }

func (l raftLogger) Debug(v ...any)              {}
func (l raftLogger) Debugf(string, ...any)       {}
func (l raftLogger) Warning(v ...any)            { l.Logger.Warn("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.Logger.Warn("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Error(v ...any)              { l.Logger.Error("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.Logger.Error("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Fatal(v ...any)              { panic(broken{fmt.Sprint(v...)}) }
func (l raftLogger) Fatalf(f string, v ...any)   { panic(broken{fmt.Sprintf(f, v...)}) }
func (l raftLogger) Panic(v ...any)              { panic(broken{fmt.Sprint(v...)}) }
func (l raftLogger) Panicf(f string, v ...any)   { panic(broken{fmt.Sprintf(f, v...)}) }

func (l raftLogger) Info(v ...any) { l.Infof("%s", fmt.Sprint(v...)) }
func (l raftLogger) Infof(f string, v ...any) {
	if l.Logger.Enabled(context.Background(), slog.LevelDebug) {
		l.Logger.Debug("raft: " + fmt.Sprintf(f, v...))
	}
}
