package consensus

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/base/linger"
)

// transport moves frames between members. Each member dials every other one, sends on that connection only, and reads from
// connections that the others made. Frames that cannot be sent are dropped, since raft repeats them.
type transport struct {
	cluster string
	self    uint64
	addr    string
	tls     *tls.Config        // of what is listened on
	secure  func() *tls.Config // of a connection to another member, nil for none
	logger  *slog.Logger
	node    *Node        // its methods for a transport do not block
	name    atomic.Value // the log's, a string

	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	listener net.Listener

	mu      sync.Mutex
	peers   map[uint64]*peer
	removed map[uint64]bool
	conns   map[net.Conn]bool
	inbound map[uint64]int // connections that each member has made
}

func (t *transport) start(l net.Listener) {
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.listener = l
	t.peers, t.removed, t.conns, t.inbound = map[uint64]*peer{}, map[uint64]bool{}, map[net.Conn]bool{}, map[uint64]int{}
	t.wg.Go(t.accept)
}

// close ends all connections after the queues are sent, or after a moment.
func (t *transport) close() {
	t.listener.Close()
	t.mu.Lock()
	peers := slices.Collect(maps.Values(t.peers))
	t.mu.Unlock()
	deadline := time.Now().Add(200 * time.Millisecond)
	for _, p := range peers {
		p.drain(deadline)
	}
	t.cancel()
	t.mu.Lock()
	for c := range t.conns {
		c.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
}

func (t *transport) setMembers(members []Member, removed []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range members {
		t.addPeer(m.ID, m.Addr)
	}
	for _, id := range removed {
		t.removed[id] = true
		if p, ok := t.peers[id]; ok {
			p.drainAndStop()
			delete(t.peers, id)
		}
	}
}

// addPeer creates a peer or changes its address. The caller holds mu.
func (t *transport) addPeer(id uint64, addr string) {
	if id == t.self || t.removed[id] || addr == "" || t.ctx.Err() != nil {
		return
	}
	if p, ok := t.peers[id]; ok {
		p.setAddr(addr)
		return
	}
	p := newPeer(t, id, addr)
	t.peers[id] = p
	t.wg.Go(p.run)
}

func (t *transport) peer(id uint64) *peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.peers[id]
}

func (t *transport) isRemoved(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removed[id]
}

func (t *transport) send(m message) bool {
	p := t.peer(m.to)
	return p != nil && p.send(m)
}

// flush sends the queue of a member, flushAll those of all members.
func (t *transport) flush(to uint64) {
	if p := t.peer(to); p != nil {
		p.flush()
	}
}

func (t *transport) flushAll() {
	t.mu.Lock()
	peers := slices.AppendSeq(make([]*peer, 0, maxTogether), maps.Values(t.peers))
	t.mu.Unlock()
	for _, p := range peers {
		p.flush()
	}
}

func (t *transport) accept() {
	pause := time.Millisecond
	for {
		conn, err := t.listener.Accept()
		if errors.Is(err, net.ErrClosed) || t.ctx.Err() != nil {
			return
		}
		if err != nil {
			// The cause may be temporary, as a lack of file descriptors.
			t.logger.Warn("accepting a connection failed", "err", err)
			if linger.For(t.ctx, pause) != nil {
				return
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		if t.tls != nil {
			conn = tls.Server(conn, t.tls)
		}
		t.mu.Lock()
		t.conns[conn] = true
		t.mu.Unlock()
		t.wg.Go(func() {
			if err := t.serve(conn); err != nil && t.ctx.Err() == nil {
				t.logger.Debug("connection ended", "peer", conn.RemoteAddr(), "err", err)
			}
			conn.Close()
			t.mu.Lock()
			delete(t.conns, conn)
			t.mu.Unlock()
		})
	}
}

func (t *transport) serve(conn net.Conn) error {
	conn.SetDeadline(time.Now().Add(handshakeTime))
	r := bufio.NewReaderSize(conn, 256<<10)
	var h hello
	if err := readJSON(r, &h); err != nil {
		return err
	}
	w := t.answerHello(h)
	if w.Refusal != "" {
		t.logger.Warn("a connection was refused", "from", h.From, "cluster", h.Cluster, "peer", conn.RemoteAddr(), "reason", w.Refusal)
		return writeJSON(conn, w)
	}
	if h.Snapshot != 0 {
		conn.SetDeadline(time.Time{})
		return t.node.sendState(t.ctx, conn, h.From, h.Snapshot)
	}
	if err := writeJSON(conn, w); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	t.mu.Lock()
	if _, ok := t.peers[h.From]; !ok {
		t.addPeer(h.From, h.Addr)
	}
	t.inbound[h.From]++
	t.mu.Unlock()
	defer t.removeInbound(h.From)
	for {
		b, err := readFrame(r, maxFrame)
		if err != nil {
			return err
		}
		if t.isForeignLog(h.Log) {
			return ErrLog // the next handshake gives the reason
		}
		if err := t.handleFrame(h.From, b); err != nil {
			return err
		}
		if !hasFrame(r) {
			t.node.flushReceived()
		}
	}
}

func hasFrame(r *bufio.Reader) bool {
	if r.Buffered() < 4 {
		return false
	}
	n, err := r.Peek(4)
	return err == nil && r.Buffered()-4 >= int(binary.LittleEndian.Uint32(n))
}

func (t *transport) removeInbound(id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inbound[id]--; t.inbound[id] == 0 {
		delete(t.inbound, id)
	}
}

func (t *transport) hasInbound(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inbound[id] > 0
}

func (t *transport) handleFrame(from uint64, b []byte) error {
	m, err := decodeMessage(t.self, b)
	switch {
	case err != nil:
		return err
	case m.ping != nil:
		if t.isRemoved(from) {
			return ErrRemoved // the next handshake gives the reason
		}
		t.node.handlePing(from, *m.ping)
		if to := t.peer(from); to != nil {
			to.queueControl(message{pong: m.ping.sent})
		}
	case m.pong != 0:
		if to := t.peer(from); to != nil {
			to.handlePong(m.pong)
		}
	case m.raft != nil && (m.raft.GetFrom() != from || m.raft.GetTo() != t.self):
		return errFrame
	default:
		t.node.receive(from, m)
	}
	return nil
}
