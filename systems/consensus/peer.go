package consensus

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
)

const (
	// A queue holds what a fast link carries in a slow round trip. Later messages of raft replace earlier ones.
	maxQueue      = 8192
	maxQueueBytes = 64 << 20
	// Retries of a connection are between these apart, doubling.
	minRetry = 20 * time.Millisecond
	maxRetry = time.Second
	// writeTime is after how long a connection that takes nothing is given up.
	writeTime = 10 * time.Second
	// directBytes is the most that the sender writes itself instead of the peer's goroutine: what fits into a socket's buffer.
	directBytes = 32 << 10
	pingEvery   = 50 * time.Millisecond
)

type peer struct {
	t    *transport
	id   uint64
	wake chan struct{}
	stop context.CancelFunc
	ctx  context.Context

	mu        sync.Mutex
	addr      string
	queue     []message
	controls  []message // pings and pongs
	bytes     int
	connected bool
	socket    syscall.RawConn // takes what it can at once; nil: under TLS
	writing   bool            // run is about to, or writes
	frames    []byte          // encoded; rest is the part that the socket did not accept
	rest      []byte
	failed    error
	conn      net.Conn
	rtt       rtt
	probe     int64         // when the ping that is being measured was sent; 0: none is
	idle      chan struct{} // closed when the queue was written, for drain
}

func newPeer(t *transport, id uint64, addr string) *peer {
	p := &peer{t: t, id: id, addr: addr, wake: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(t.ctx)
	return p
}

func sizeOf(m message) int {
	n := 64
	for _, e := range m.raft.GetEntries() {
		n += len(e.GetData()) + 32
	}
	if m.forward != nil {
		for _, it := range m.forward.items {
			n += len(it.data) + 32
		}
	}
	return n
}

func (p *peer) send(m message) bool {
	size := sizeOf(m)
	p.mu.Lock()
	if !p.connected || len(p.queue) >= maxQueue || p.bytes+size > maxQueueBytes {
		p.mu.Unlock()
		return false
	}
	p.queue = append(p.queue, m)
	p.bytes += size
	p.mu.Unlock()
	return true
}

func (p *peer) queueControl(m message) {
	p.mu.Lock()
	if p.connected && len(p.controls) < maxQueue {
		p.controls = append(p.controls, m)
	}
	p.mu.Unlock()
	p.signal()
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *peer) setAddr(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr != p.addr {
		p.addr = addr
		if p.conn != nil {
			p.conn.Close()
		}
	}
}

func (p *peer) drainAndStop() {
	p.t.wg.Go(func() {
		p.drain(time.Now().Add(200 * time.Millisecond))
		p.stop()
	})
}

func (p *peer) drain(deadline time.Time) {
	p.mu.Lock()
	if !p.connected || len(p.queue) == 0 {
		p.mu.Unlock()
		return
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	p.signal()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

func (p *peer) run() {
	retry := minRetry
	for p.ctx.Err() == nil {
		p.mu.Lock()
		addr := p.addr
		p.mu.Unlock()
		conn, r, w, err := p.t.connect(p.ctx, addr, hello{To: p.id}, handshakeTime)
		if err == nil {
			retry = minRetry
			err = p.serveConn(conn, r, w.Log)
		}
		if p.ctx.Err() != nil {
			return
		}
		p.disconnected(err)
		if errors.Is(err, ErrRemoved) {
			p.t.node.handleExpelled()
		}
		if errors.Is(err, syscall.ECONNREFUSED) && !p.t.hasInbound(p.id) {
			p.t.node.peerEnded(p.id)
		}
		_ = linger.For(p.ctx, retry/2+rand.N(retry)) // the loop checks the context
		retry = min(2*retry, maxRetry)
	}
}

func (p *peer) disconnected(err error) {
	p.mu.Lock()
	was := p.failed
	lost := len(p.queue) > 0 || p.connected
	p.connected, p.failed, p.conn = false, err, nil
	p.queue, p.controls, p.bytes, p.rest, p.socket, p.writing = nil, nil, 0, nil, nil, false
	p.mu.Unlock()
	if was == nil || was.Error() != err.Error() {
		p.t.logger.Warn("member is out of reach", "member", p.id, "err", err)
	}
	if lost {
		p.t.node.peerLost(p.id)
	}
}

func (p *peer) serveConn(conn net.Conn, r *bufio.Reader, log string) error {
	p.mu.Lock()
	p.conn, p.connected, p.failed, p.probe, p.writing = conn, true, nil, 0, true
	p.socket = socketOf(conn)
	p.mu.Unlock()
	p.t.logger.Debug("connected", "member", p.id)
	// The other side sends nothing here. The end of the stream reports its loss.
	ended := make(chan struct{})
	var end error // once ended is closed
	p.t.wg.Go(func() {
		defer close(ended)
		if _, end = r.ReadByte(); end == nil {
			end = errFrame
		}
		conn.Close()
	})
	stop := context.AfterFunc(p.ctx, func() { conn.Close() })
	defer stop()
	err := p.write(conn, log, ended)
	conn.Close()
	<-ended
	if err == nil || errors.Is(err, net.ErrClosed) {
		err = end
	}
	if errors.Is(err, net.ErrClosed) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// write returns nil when ended is closed.
func (p *peer) write(conn net.Conn, log string, ended <-chan struct{}) error {
	w := bufio.NewWriterSize(conn, 256<<10)
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	next := time.Time{}
	for {
		if p.t.isForeignLog(log) {
			return fmt.Errorf("%w: member %d has the log %s", ErrLog, p.id, log)
		}
		p.mu.Lock()
		rest, queue, controls := p.rest, p.queue, p.controls
		p.rest, p.queue, p.controls, p.bytes, p.writing = nil, nil, nil, 0, true
		p.mu.Unlock()
		now := time.Now()
		if !now.Before(next) {
			controls = append(controls, p.newPing(now))
			next = now.Add(pingEvery)
		}
		if len(rest)+len(queue)+len(controls) > 0 {
			conn.SetWriteDeadline(now.Add(writeTime))
			if _, err := w.Write(rest); err != nil {
				return err
			}
			if err := p.writeQueued(w, controls, queue); err != nil {
				return err
			}
			continue
		}
		if w.Buffered() > 0 {
			if err := w.Flush(); err != nil {
				return err
			}
			continue
		}
		conn.SetWriteDeadline(time.Time{}) // flush keeps none: it does not wait
		if !p.release() {
			continue
		}
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case <-ended:
			return nil
		case <-p.wake:
		case <-tick.C:
		}
	}
}

func (p *peer) release() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue)+len(p.controls) > 0 {
		return false
	}
	p.writing = false
	if p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	return true
}

func (p *peer) writeQueued(w *bufio.Writer, queues ...[]message) error {
	for _, queue := range queues {
		for _, m := range queue {
			b, err := encodeMessage(m)
			if err != nil {
				return err
			}
			if err := writeFrame(w, b); err != nil {
				return err
			}
			// Acknowledgements are urgent, and large frames gain nothing from batching.
			if m.raft.GetType() == raftpb.MsgAppResp || len(b) > 64<<10 {
				if err := w.Flush(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// socketOf returns the socket for writes that do not block, nil if the connection has none.
func socketOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	socket, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return socket
}

// flush sends the queue: directly if the peer's goroutine does not write and the queue is short, which saves a wake-up, else
// by the goroutine. It never blocks: it leaves the rest and errors to the goroutine.
func (p *peer) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(p.queue) == 0, p.writing, len(p.rest) > 0: // it looks again before it rests
	case p.socket == nil, p.bytes > directBytes, len(p.controls) > 0, !p.encode():
		p.signal()
	default:
		clear(p.queue)
		p.queue, p.bytes = p.queue[:0], 0
		if n := tryWrite(p.socket, p.frames); n < len(p.frames) {
			p.rest = slices.Clone(p.frames[n:])
			p.signal()
		}
	}
}

func (p *peer) encode() bool {
	p.frames = p.frames[:0]
	for _, m := range p.queue {
		b, err := encodeMessage(m)
		if err != nil {
			return false
		}
		p.frames = binary.LittleEndian.AppendUint32(p.frames, uint32(len(b)))
		p.frames = append(p.frames, b...)
	}
	return true
}

func tryWrite(socket syscall.RawConn, b []byte) (n int) {
	err := socket.Write(func(fd uintptr) bool {
		n, _ = unix.Write(int(fd), b)
		return true
	})
	if err != nil || n < 0 {
		return 0
	}
	return n
}
