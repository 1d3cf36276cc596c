package consensus

import (
	"encoding/binary"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketOf is what a connection is written to without waiting, nil where that is not possible.
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

// flush sends what is queued: itself where the peer's goroutine does not write and it is little,
// which saves waking that one up, else by it. It never waits: what the socket does not take is
// left to the goroutine, and so are errors.
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

// encode makes frames of what is queued; false: that is not possible.
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

// tryWrite writes what a socket takes at once.
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
