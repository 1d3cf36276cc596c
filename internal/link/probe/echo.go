package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	icmpEcho      = 8
	icmpEchoReply = 0
	icmpHeader    = 8
	// echoPayload makes an echo packet 84 bytes of IP, like ping.
	echoPayload = 56
	// icmpFilter is ICMP_FILTER of SOL_RAW: a mask of excluded types.
	icmpFilter = 1
)

// echoSocket sends echo requests from one namespace and reads the replies. It is a raw socket, or a ping socket if raw
// ones are refused and net.ipv4.ping_group_range permits it.
type echoSocket struct {
	fd    int
	nonce uint64
	buf   [2048]byte
	oob   [controlSize]byte
}

// probeID identifies a probe in the payload of the request, of its reply, and of the kernel's copy of the request.
type probeID struct{ pair, seq uint32 }

func openEcho(from Inside, nonce uint64) (*echoSocket, error) {
	s := &echoSocket{fd: -1, nonce: nonce}
	err := from.Do(func() (err error) {
		const flags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
		s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|flags, unix.IPPROTO_ICMP)
		if err == nil {
			return unix.SetsockoptInt(s.fd, unix.SOL_RAW, icmpFilter, ^(1 << icmpEchoReply))
		}
		if errors.Is(err, unix.EPERM) {
			s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|flags, unix.IPPROTO_ICMP)
		}
		return err
	})
	if err == nil {
		// The SCHED timestamp precedes the queueing discipline, where netem delays packets.
		err = requestTimestamps(s.fd, unix.SOF_TIMESTAMPING_TX_SCHED)
	}
	if err == nil {
		err = growBuffers(s.fd, 1<<20)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("opening an ICMP socket at %s: %w", from.Addr(), err)
	}
	return s, nil
}

func (s *echoSocket) close() {
	if s.fd >= 0 {
		unix.Close(s.fd)
	}
}

// send returns when it sent the request, in ns of CLOCK_REALTIME.
func (s *echoSocket) send(to netip.Addr, t probeID) (int64, error) {
	var p [icmpHeader + echoPayload]byte
	p[0] = icmpEcho
	binary.BigEndian.PutUint16(p[4:], uint16(s.nonce))
	binary.BigEndian.PutUint16(p[6:], uint16(t.seq))
	binary.BigEndian.PutUint64(p[icmpHeader:], s.nonce)
	binary.BigEndian.PutUint32(p[icmpHeader+8:], t.pair)
	binary.BigEndian.PutUint32(p[icmpHeader+12:], t.seq)
	binary.BigEndian.PutUint16(p[2:], checksum(p[:]))
	at := time.Now().UnixNano()
	return at, unix.Sendto(s.fd, p[:], 0, &unix.SockaddrInet4{Addr: to.As4()})
}

// receive reads one packet: a reply, or with MSG_ERRQUEUE the kernel's copy of a request. ok is false for packets of
// other programs. The error is EAGAIN if no packet is left.
func (s *echoSocket) receive(flags int) (t probeID, at int64, ok bool, err error) {
	n, oobn, _, _, err := unix.Recvmsg(s.fd, s.buf[:], s.oob[:], flags)
	if err != nil {
		return t, 0, false, err
	}
	// The headers before the payload depend on the socket and the device. The payload is always last.
	if n < echoPayload {
		return t, 0, false, nil
	}
	p := s.buf[n-echoPayload : n]
	if binary.BigEndian.Uint64(p) != s.nonce {
		return t, 0, false, nil
	}
	t = probeID{pair: binary.BigEndian.Uint32(p[8:]), seq: binary.BigEndian.Uint32(p[12:])}
	return t, parseControl(s.oob[:oobn]).stamp, true, nil
}

// checksum is the checksum of RFC 1071 over an even number of bytes.
func checksum(p []byte) uint16 {
	var sum uint32
	for i := 0; i < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
