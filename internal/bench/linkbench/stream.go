package linkbench

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"skerry/internal/link"
)

// Stream is one TCP stream without any shaping.
type Stream struct {
	VethBPS float64 `json:"veth_bps"` // a plain veth pair
	LinkBPS float64 `json:"link_bps"` // a link without latency or limit
	Ratio   float64 `json:"ratio"`    // link / veth, medians of rounds in turn
}

// Long is one TCP stream on a fast link with a long round trip.
type Long struct {
	RTT       float64 `json:"rtt_ms"`
	Bandwidth int64   `json:"bandwidth_bps"`
	// SteadyBPS is the payload carried after the slow start.
	SteadyBPS float64 `json:"steady_bps"`
	Seconds   float64 `json:"seconds"`
}

func (b *bench) stream(ctx context.Context) (err error) {
	b.Progress("one TCP stream, unshaped, and on a plain veth pair")
	w, err := b.pair(ctx, link.Quality{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	near, far, err := w.veth()
	if err != nil {
		return err
	}
	var veth, emulated []float64
	for range pick(b, 5, 3) {
		v, err := b.goodput(ctx, near, far, 500*time.Millisecond, 2*time.Second)
		if err != nil {
			return err
		}
		e, err := b.goodput(ctx, w.wires[0].a, w.wires[0].b, 500*time.Millisecond, 2*time.Second)
		if err != nil {
			return err
		}
		veth, emulated = append(veth, v), append(emulated, e)
	}
	r := &Stream{VethBPS: median(veth), LinkBPS: median(emulated)}
	r.Ratio = r.LinkBPS / r.VethBPS
	b.result.Stream = r
	return nil
}

// veth joins the two places of a world by a plain pair, too.
func (w *world) veth() (near, far *stand, err error) {
	near, far = &stand{w.places[0], "10.98.0.1"}, &stand{w.places[1], "10.98.0.2"}
	err = near.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "v"}, PeerName: "v",
			PeerNamespace: netlink.NsFd(int(far.ns.Fd())),
		})
	})
	return near, far, errors.Join(err, near.address("v", near.addr+"/30"), far.address("v", far.addr+"/30"))
}

func (b *bench) long(ctx context.Context) (err error) {
	const rtt, bandwidth = 100 * time.Millisecond, 1_000_000_000
	b.Progress("one TCP stream at 100 ms and 1 Gbit/s")
	w, err := b.pair(ctx, link.Quality{Latency: rtt / 2, Bandwidth: bandwidth})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	steady := pick(b, 15*time.Second, 5*time.Second)
	bps, err := b.goodput(ctx, w.wires[0].a, w.wires[0].b, pick(b, 10*time.Second, 5*time.Second), steady)
	if err != nil {
		return err
	}
	b.result.Long = &Long{RTT: milliseconds(rtt), Bandwidth: bandwidth, SteadyBPS: bps, Seconds: steady.Seconds()}
	return nil
}

// goodput is the payload in bit/s that a new stream carries, after it ran for a while.
func (b *bench) goodput(ctx context.Context, from, to *stand, after, during time.Duration) (float64, error) {
	s, err := startStream(ctx, from, to)
	if err != nil {
		return 0, err
	}
	var bps float64
	if err = sleep(ctx, after); err == nil {
		mark := s.mark()
		err = sleep(ctx, during)
		bps = s.since(mark)
	}
	return bps, errors.Join(err, s.stop())
}

// tcpStream is a stream under way.
type tcpStream struct {
	from, to net.Conn
	received atomic.Int64 // bytes
	both     sync.WaitGroup
}

// streamBuffer is what is written and read at a time, the same as iperf3 does.
const streamBuffer = 128 << 10

func startStream(ctx context.Context, from, to *stand) (*tcpStream, error) {
	var l *net.TCPListener
	err := to.Do(func() (err error) {
		l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(to.addr), 0)))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	s := &tcpStream{}
	var acceptErr error
	var accepted sync.WaitGroup
	accepted.Go(func() { s.to, acceptErr = l.Accept() })
	err = from.Do(func() (err error) {
		// DialTCP connects on the calling thread's namespace: its socket is made here.
		s.from, err = net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
		return err
	})
	if err != nil {
		l.Close()
	}
	accepted.Wait()
	if err := errors.Join(err, acceptErr); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.both.Go(s.send)
	s.both.Go(s.receive)
	return s, nil
}

func (s *tcpStream) send() {
	buffer := make([]byte, streamBuffer)
	rand.Read(buffer) // untouched memory would all be one page, in the fastest cache
	for {
		if _, err := s.from.Write(buffer); err != nil {
			return // stop closed it
		}
	}
}

func (s *tcpStream) receive() {
	buffer := make([]byte, streamBuffer)
	for {
		n, err := s.to.Read(buffer)
		s.received.Add(int64(n))
		if err != nil {
			return // stop closed it
		}
	}
}

// stop ends the stream at once, with what is under way.
func (s *tcpStream) stop() error {
	var errs []error
	for _, c := range []net.Conn{s.from, s.to} {
		if c != nil {
			errs = append(errs, c.(*net.TCPConn).SetLinger(0), c.Close())
		}
	}
	s.both.Wait()
	return errors.Join(errs...)
}

// mark is a moment of a stream.
type mark struct {
	at    time.Time
	bytes int64
}

func (s *tcpStream) mark() mark { return mark{time.Now(), s.received.Load()} }

// since is the payload received since a mark, in bit/s.
func (s *tcpStream) since(m mark) float64 {
	now := s.mark()
	return float64(now.bytes-m.bytes) * 8 / now.at.Sub(m.at).Seconds()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
