package linkbench

import (
	"context"
	"errors"
	"time"

	"github.com/vishvananda/netlink"

	"skerry/internal/bench/tcpstream"
	"skerry/internal/evidence/stats"
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
		v, err := tcpstream.Goodput(ctx, near, far, 500*time.Millisecond, 2*time.Second)
		if err != nil {
			return err
		}
		e, err := tcpstream.Goodput(ctx, w.wires[0].a, w.wires[0].b, 500*time.Millisecond, 2*time.Second)
		if err != nil {
			return err
		}
		veth, emulated = append(veth, v), append(emulated, e)
	}
	r := &Stream{VethBPS: stats.Median(veth), LinkBPS: stats.Median(emulated)}
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
	bps, err := tcpstream.Goodput(ctx, w.wires[0].a, w.wires[0].b, pick(b, 10*time.Second, 5*time.Second), steady)
	if err != nil {
		return err
	}
	b.result.Long = &Long{RTT: milliseconds(rtt), Bandwidth: bandwidth, SteadyBPS: bps, Seconds: steady.Seconds()}
	return nil
}
