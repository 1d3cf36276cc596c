package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/procfs"
)

const (
	// replyTimeout is the wait after the last probe for a pair that never answered. Other pairs wait for
	// minReplyTimeout or three times their longest RTT.
	replyTimeout    = 2 * time.Second
	minReplyTimeout = time.Second
	// pollInterval bounds the time between two checks of the context.
	pollInterval = 50 * time.Millisecond
)

// RTTResult is the result of RTT for one pair.
type RTTResult struct {
	Sent int
	Lost int
	// Disturbed is the number of answered probes that Undisturbed excluded from Samples.
	Disturbed int
	// Samples are the round trips of answered probes in the order of sending.
	Samples []time.Duration
	// Min, Median, P99 (nearest rank) and Max of Samples, 0 without samples.
	Min, Median, P99, Max time.Duration
	// Err is the first send error of the kernel, for example ENETUNREACH. The probe counts as lost.
	Err error `json:"-"`
}

// Loss returns the share of unanswered probes, 0 to 1.
func (r RTTResult) Loss() float64 {
	if r.Sent == 0 {
		return 0
	}
	return float64(r.Lost) / float64(r.Sent)
}

// MeasureRTT sends count ICMP echo requests per pair, one per interval, to all pairs at once. It returns the round trips in the
// order of pairs. A round trip begins when the request enters the queueing discipline of its device and ends when the
// reply arrives in the sender's namespace. Both times are the kernel's CLOCK_REALTIME; setting the clock meanwhile
// invalidates samples. The peer's kernel replies. Packets are 84 bytes of IP, 672 bits each way on a slow link.
//
// Probes are spread evenly over the interval, so that they do not queue behind each other. RTT uses the calling
// goroutine and one socket per distinct From. It takes count*interval. Missing replies add a second or two, or three
// times the longest round trip. A lost probe is no error.
func MeasureRTT(ctx context.Context, pairs []Pair, count int, interval time.Duration) ([]RTTResult, error) {
	p, err := ping(ctx, pairs, count, interval)
	if err != nil {
		return nil, err
	}
	results := make([]RTTResult, len(pairs))
	for i := range results {
		results[i] = p.result(i)
	}
	return results, nil
}

// flight holds when a probe left and when its reply came, in ns of CLOCK_REALTIME; 0 means not yet.
type flight struct{ left, back int64 }

type pinger struct {
	interval time.Duration
	count    int
	sockets  []*echoSocket // one per distinct From
	polls    []unix.PollFd // one per socket
	routes   []route       // one per pair
	flights  [][]flight    // by pair and sequence number
	steal    *procfs.StealCounter
	stalls   []stall
}

type route struct {
	socket  *echoSocket
	to      netip.Addr
	lastOut time.Time     // time of the latest probe
	longest time.Duration // longest round trip
	open    int           // unanswered probes
	err     error
}

func (p *pinger) open(pairs []Pair) error {
	nonce := rand.Uint64()
	byFrom := map[Inside]*echoSocket{}
	for _, pair := range pairs {
		to, err := netip.ParseAddr(pair.To.Addr())
		if err != nil || !to.Is4() {
			return fmt.Errorf("probe %q: not an IPv4 address", pair.To.Addr())
		}
		s := byFrom[pair.From]
		if s == nil {
			if s, err = openEcho(pair.From, nonce); err != nil {
				return err
			}
			byFrom[pair.From] = s
			p.sockets = append(p.sockets, s)
			p.polls = append(p.polls, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
		p.routes = append(p.routes, route{socket: s, to: to})
	}
	return nil
}

func (p *pinger) close() {
	for _, s := range p.sockets {
		s.close()
	}
}

func (p *pinger) run(ctx context.Context) error {
	start := time.Now().Add(timestampDelay)
	total := p.count * len(p.routes)
	for next := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := time.Now()
		for next < total && !now.Before(p.due(start, next)) {
			p.send(next%len(p.routes), next/len(p.routes), now)
			next++
		}
		wait := pollInterval
		if next < total {
			wait = min(wait, time.Until(p.due(start, next)))
		} else if p.done(now) {
			return nil
		}
		due := time.Now().Add(max(wait, 0))
		if err := p.awaitReplies(max(wait, 0)); err != nil {
			return err
		}
		p.recordStall(due, time.Now())
	}
}

// due returns when to send the k-th probe of all.
func (p *pinger) due(start time.Time, k int) time.Time {
	round, pair := k/len(p.routes), k%len(p.routes)
	stagger := p.interval * time.Duration(pair) / time.Duration(len(p.routes))
	return start.Add(time.Duration(round)*p.interval + stagger)
}

func (p *pinger) send(pair, seq int, now time.Time) {
	r := &p.routes[pair]
	left, err := r.socket.send(r.to, probeID{pair: uint32(pair), seq: uint32(seq)})
	p.flights[pair] = append(p.flights[pair], flight{left: left})
	if err != nil {
		if r.err == nil {
			r.err = fmt.Errorf("probe %s: %w", r.to, err)
		}
		return
	}
	r.lastOut = now
	r.open++
}

// done reports whether no reply is expected any more.
func (p *pinger) done(now time.Time) bool {
	for _, r := range p.routes {
		wait := replyTimeout
		if r.longest > 0 {
			wait = max(minReplyTimeout, 3*r.longest)
		}
		if r.open > 0 && now.Sub(r.lastOut) < wait {
			return false
		}
	}
	return true
}

func (p *pinger) awaitReplies(wait time.Duration) error {
	timeout := unix.NsecToTimespec(int64(wait))
	n, err := unix.Ppoll(p.polls, &timeout, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for replies: %w", err)
	}
	if n <= 0 {
		return nil
	}
	for i, poll := range p.polls {
		if poll.Revents&unix.POLLERR != 0 {
			p.readAll(p.sockets[i], unix.MSG_ERRQUEUE, func(f *flight, _ *route, at int64) { f.left = at })
		}
		if poll.Revents&unix.POLLIN != 0 {
			p.readAll(p.sockets[i], 0, recordReply)
		}
	}
	return nil
}

func recordReply(f *flight, r *route, at int64) {
	if f.back != 0 {
		return // duplicate reply
	}
	f.back = at
	r.open--
	r.longest = max(r.longest, time.Duration(f.back-f.left))
}

// readAll passes every waiting packet of s to note.
func (p *pinger) readAll(s *echoSocket, flags int, note func(*flight, *route, int64)) {
	for {
		t, at, ok, err := s.receive(flags)
		if err != nil {
			return // EAGAIN, or an irrelevant ICMP error
		}
		if ok && int(t.pair) < len(p.routes) && int(t.seq) < len(p.flights[t.pair]) {
			note(&p.flights[t.pair][t.seq], &p.routes[t.pair], at)
		}
	}
}

func (p *pinger) result(pair int) RTTResult {
	var samples []time.Duration
	for _, f := range p.flights[pair] {
		if f.back != 0 {
			samples = append(samples, time.Duration(f.back-f.left))
		}
	}
	r := NewRTTResult(len(p.flights[pair]), samples)
	r.Err = p.routes[pair].err
	return r
}

// NewRTTResult returns the result of sent probes. Each answered probe has a sample.
func NewRTTResult(sent int, samples []time.Duration) RTTResult {
	r := RTTResult{Sent: sent, Lost: sent - len(samples)}
	r.setSamples(samples)
	return r
}

// setSamples sets the samples and their statistics.
func (r *RTTResult) setSamples(samples []time.Duration) {
	if r.Samples = samples; len(samples) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(samples))
	r.Min, r.Max = sorted[0], sorted[len(sorted)-1]
	r.Median, r.P99 = quantile(sorted, 0.5), quantile(sorted, 0.99)
}

// quantile returns the nearest-rank quantile of sorted samples.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

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
		return nil, fmt.Errorf("open ICMP socket at %s: %w", from.Addr(), err)
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
