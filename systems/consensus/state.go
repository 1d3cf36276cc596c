package consensus

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"skerry/internal/base/linger"
)

// A member that needs a state asks a member that has one. The sender writes the state to a file first, so that the receiver
// does not delay its consumer. It sends the file as uncompressed gzip, whose length and checksum at
// the end show that the state is complete.
const (
	stateChunk = 256 << 10 // the sender pauses after each, to keep stateRate
	// stateRate bounds what a state takes of the network, in bytes per second and per receiver.
	stateRate = 64 << 20
	// saveTime is how long a receiver waits for the giver's state to be written to a file.
	saveTime = 10 * time.Minute
	// spoolAge is for how long one file serves several receivers.
	spoolAge = 30 * time.Second
)

type snapshots struct {
	path string // of the file that a state is given from

	use   sync.Mutex // of the Snapshotter, and of the next two
	index uint64     // of the state in the file; 0: none
	made  time.Time

	mu      sync.Mutex
	loading bool
	offered *raftpb.Message // the snapshot that waits for its state
}

func (s *snapshots) init(cfg Config) {
	s.path = filepath.Join(cfg.Dir, "state.spool")
	os.Remove(s.path)
}

func (s *snapshots) close() { os.Remove(s.path) }

func (n *Node) openSpool(ctx context.Context, least uint64) (*os.File, uint64, error) {
	s := &n.snap
	if n.cfg.Snapshotter == nil || n.Self().Role == Witness {
		return nil, 0, ErrNoSnapshotter
	}
	// This check precedes the lock, so that two members without state do not wait for each other.
	if n.applied.Load() < least {
		return nil, 0, fmt.Errorf("%w at %d yet: it has applied %d", ErrNoSnapshotter, least, n.applied.Load())
	}
	s.use.Lock()
	defer s.use.Unlock()
	if s.index >= least && time.Since(s.made) < spoolAge {
		f, err := os.Open(s.path)
		return f, s.index, err
	}
	os.Remove(s.path) // current readers have it open
	s.index = 0
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, err
	}
	index, err := n.cfg.Snapshotter.Save(ctx, f)
	if err == nil && index < least {
		err = fmt.Errorf("the consumer saved its state at %d, it had reported %d as applied", index, n.applied.Load())
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		os.Remove(s.path)
		return nil, 0, fmt.Errorf("saving the state: %w", err)
	}
	s.index, s.made = index, time.Now()
	return f, index, nil
}

func (n *Node) sendState(ctx context.Context, conn net.Conn, from, least uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, index, err := n.openSpool(ctx, least)
	if err != nil {
		return writeJSON(conn, welcome{Refusal: refusedState, Detail: err.Error()})
	}
	defer f.Close()
	n.logger.Info("gives its state", "to", from, "index", index)
	if err := writeJSON(conn, welcome{Index: index}); err != nil {
		return err
	}
	begun, total := time.Now(), int64(0)
	z, _ := gzip.NewWriterLevel(conn, gzip.NoCompression) // a valid level
	for {
		conn.SetWriteDeadline(time.Now().Add(writeTime))
		c, err := io.CopyN(z, f, stateChunk)
		total += c
		if err == io.EOF {
			return z.Close()
		}
		if err != nil {
			return fmt.Errorf("send the state: %w", err)
		}
		due := begun.Add(time.Duration(float64(total) / stateRate * float64(time.Second)))
		if err := linger.For(ctx, time.Until(due)); err != nil {
			return err
		}
	}
}

// stateSource sets a deadline for each read: a state may take long, but its sender must not be silent.
type stateSource struct {
	r    io.Reader
	conn net.Conn
}

func (s stateSource) Read(p []byte) (int, error) {
	s.conn.SetReadDeadline(time.Now().Add(6 * writeTime))
	return s.r.Read(p)
}

// deferSnapshot reports whether a snapshot must wait for its state, and starts to load the state.
func (n *Node) deferSnapshot(msg *raftpb.Message) bool {
	index := msg.GetSnapshot().GetMetadata().GetIndex()
	if n.cfg.Snapshotter == nil || n.Self().Role == Witness || index <= 1 || n.applied.Load() >= index {
		return false
	}
	n.snap.mu.Lock()
	defer n.snap.mu.Unlock()
	n.snap.offered = msg
	n.post(func() { n.m.holdProposals(snapshotTicks) })
	if !n.snap.loading {
		n.snap.loading = true
		n.wg.Go(func() { n.loadOffered(msg.GetFrom(), index) })
	}
	return true
}

func (n *Node) loadOffered(from, index uint64) {
	_, err := n.load(n.ctx, from, index, true)
	n.snap.mu.Lock()
	msg := n.snap.offered
	n.snap.loading, n.snap.offered = false, nil
	n.snap.mu.Unlock()
	if err != nil {
		// The leader offers it again.
		n.logger.Warn("no state to go on from", "index", index, "err", err)
		n.post(func() { n.m.holdProposals(0) })
		return
	}
	n.post(func() { n.m.holdProposals(2 * electionTicks) })
	n.receive(msg.GetFrom(), message{raft: msg})
	n.flushReceived()
}

// Fetch loads the state of member from into this node's Snapshotter and returns the state's index. If from is 0, it takes
// the nearest member with a later state. It is for a consumer that lost its state while its log is intact.
func (n *Node) Fetch(ctx context.Context, from uint64) (index uint64, err error) {
	if n.cfg.Snapshotter == nil {
		return 0, ErrNoSnapshotter
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	first, err := n.log.FirstIndex()
	if err != nil {
		return 0, fmt.Errorf("reading the log: %w", err)
	}
	return n.load(ctx, from, max(first-1, 1), from == 0)
}

// load loads a state at index or later: of member from, or with anyMember of any other one if that fails.
func (n *Node) load(ctx context.Context, from, index uint64, anyMember bool) (uint64, error) {
	var failed error
	for _, m := range n.stateSources(from, index, anyMember) {
		at, err := n.loadFrom(ctx, m, index)
		if err == nil {
			return at, nil
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	if failed == nil {
		failed = ErrNotMember
	}
	return 0, fmt.Errorf("loading a state at %d or later: %w", index, failed)
}

// stateSources returns the members to ask: from, then members with a late enough state, nearest first, then the others.
func (n *Node) stateSources(from, index uint64, anyMember bool) []Member {
	var members []MemberStatus
	n.call(func() {
		members = n.status().Members
		if len(members) == 0 {
			for _, m := range n.cfg.Members {
				members = append(members, MemberStatus{Member: m})
			}
		}
	})
	members = slices.DeleteFunc(members, func(m MemberStatus) bool {
		return m.ID == n.cfg.Self.ID || m.Role == Witness || m.ID != from && !anyMember
	})
	rank := func(m MemberStatus) int {
		switch {
		case m.ID == from:
			return 0
		case m.Connected && m.Applied >= index:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(members, func(a, b MemberStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.RTT, b.RTT))
	})
	var out []Member
	for _, m := range members {
		out = append(out, m.Member)
	}
	return out
}

func (n *Node) loadFrom(ctx context.Context, m Member, index uint64) (uint64, error) {
	conn, r, w, err := n.tr.connect(ctx, m.Addr, hello{To: m.ID, Snapshot: index}, saveTime)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if w.Index < index {
		return 0, fmt.Errorf("member %d gave a state at %d, asked for %d", m.ID, w.Index, index)
	}
	n.logger.Info("loads a state", "from", m.ID, "index", w.Index)
	z, err := gzip.NewReader(stateSource{r, conn})
	if err != nil {
		return 0, fmt.Errorf("loading the state of member %d: %w", m.ID, err)
	}
	z.Multistream(false)
	n.snap.use.Lock()
	defer n.snap.use.Unlock()
	if err := n.cfg.Snapshotter.Load(ctx, w.Index, z); err != nil {
		return 0, fmt.Errorf("loading the state of member %d: %w", m.ID, err)
	}
	n.snap.index = 0
	n.Applied(w.Index)
	return w.Index, nil
}
