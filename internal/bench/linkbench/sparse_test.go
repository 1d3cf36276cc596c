package linkbench

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/link/probe"
)

const pingTimeout = 2 * time.Second

// pingByProgramClock sends echo requests along pairs as a program does that waits for each answer, and takes
// the time by that program's clock: its own way through the scheduler counts. The pairs'
// requests are spread over the interval.
func pingByProgramClock(ctx context.Context, pairs []probe.Pair, count int, interval time.Duration) ([][]time.Duration, error) {
	all := make([][]time.Duration, len(pairs))
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now().Add(50 * time.Millisecond)
	for i, p := range pairs {
		group.Go(func() (err error) {
			first := begin.Add(interval * time.Duration(i) / time.Duration(len(pairs)))
			all[i], err = pingPair(ctx, p, uint16(i), first, count, interval)
			return err
		})
	}
	return all, group.Wait()
}

func pingPair(
	ctx context.Context, p probe.Pair, id uint16, first time.Time, count int, interval time.Duration,
) (took []time.Duration, err error) {
	to, err := netip.ParseAddr(p.To.Addr())
	if err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fd := -1
	err = p.From.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	limit := unix.NsecToTimeval(int64(pingTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	if err := filterReplies(fd, id); err != nil {
		return nil, fmt.Errorf("ping %s: %w", to, err)
	}
	at := &unix.SockaddrInet4{Addr: to.As4()}
	for n := range count {
		if err := linger.For(ctx, time.Until(first.Add(time.Duration(n)*interval))); err != nil {
			return took, err
		}
		d, err := exchangeEcho(fd, at, id, uint16(n))
		if err != nil {
			return took, fmt.Errorf("ping %s: %w", to, err)
		}
		took = append(took, d)
	}
	return took, nil
}

// filterReplies has the kernel hand a raw socket of ICMP the answers with an identifier alone: others would
// wake up who waits for its own.
func filterReplies(fd int, id uint16) error {
	const ipHeader, identifier, all = 20, 4, 0xffff
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: ipHeader + identifier},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(id)},
		{Code: unix.BPF_RET | unix.BPF_K, K: all},
		{Code: unix.BPF_RET | unix.BPF_K},
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter)
}

func exchangeEcho(fd int, to *unix.SockaddrInet4, id, seq uint16) (time.Duration, error) {
	var request [64]byte
	var answer [2048]byte
	const echoRequest, echoReply, ipHeader = 8, 0, 20
	request[0] = echoRequest
	binary.BigEndian.PutUint16(request[4:], id)
	binary.BigEndian.PutUint16(request[6:], seq)
	sum := uint32(request[0])<<8 + uint32(id) + uint32(seq)
	binary.BigEndian.PutUint16(request[2:], ^uint16(sum>>16+sum&0xffff))
	begin := time.Now()
	if err := unix.Sendto(fd, request[:], 0, to); err != nil {
		return 0, err
	}
	for {
		n, _, err := unix.Recvfrom(fd, answer[:], 0)
		took := time.Since(begin)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == ipHeader+len(request) && answer[ipHeader] == echoReply && binary.BigEndian.Uint16(answer[ipHeader+6:]) == seq &&
			[4]byte(answer[12:16]) == to.Addr:
			return took, nil
		}
	}
}

// sparse is the error of round trips relative to the configured ones when packets are rare, so that
// processors sleep between them: above what a plain veth pair takes in the same run. Times are in ms.
type sparse struct {
	samples int
	// vethMean and vethMax are as many round trips of the plain pair, as often.
	vethMean, vethMax float64
	// extraMean and worstPair are means of the links' round trips less what was set and less
	// vethMean: over all, and of the pair that is worst. extraP99 and extraMax are of single packets;
	// worstAbove is by how much the worst of them is above the worst of the plain pair.
	extraMean, worstPair, extraP99, extraMax, worstAbove float64
	// lateP50 and lateP99 are the emulator's own account, for one direction.
	lateP50, lateP99 float64
}

// sparseScale gives links of 1 to 40 ms one way.
const sparseScale = 0.37

// sparseRates are round trips a second and pair, and over how many pairs.
var sparseRates = []struct {
	rate  float64
	wires int
	count int
}{{1, 28, 10}, {20, 28, 100}, {1000, 1, 4000}}

// BenchmarkSparse measures round trips at low packet rates over the nearest pairs of azure8: beside nothing or a busy loop
// for each core, by timestamps of packets (kernel) or by a program's clock. The target is a mean of 0.05 ms, and a worst
// packet 0.15 ms above the worst of the plain pair. Use -benchtime 1x.
func BenchmarkSparse(b *testing.B) {
	for _, beside := range []string{"nothing", "busy"} {
		for _, clock := range []string{"kernel", "program"} {
			for _, r := range sparseRates {
				b.Run(fmt.Sprintf("%g a second on %d pairs, beside %s, %s", r.rate, r.wires, beside, clock), func(b *testing.B) {
					bench := newBench(b)
					for b.Loop() {
						s, err := bench.measureSparse(b.Context(), r.rate, r.wires, r.count, beside == "busy", clock == "program")
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(s.vethMean, "ms-veth")
						b.ReportMetric(s.extraMean, "ms-mean")
						b.ReportMetric(s.worstPair, "ms-worst-pair")
						b.ReportMetric(s.extraP99, "ms-p99")
						b.ReportMetric(s.extraMax, "ms-max")
						b.ReportMetric(s.worstAbove, "ms-worst-above-veth")
						b.ReportMetric(s.lateP50, "ms-late-p50")
						b.ReportMetric(s.lateP99, "ms-late-p99")
					}
				})
			}
		}
	}
}

func (b *bench) measureSparse(ctx context.Context, rate float64, pairs, count int, busy, program bool) (s sparse, err error) {
	w, err := b.newAzureTestbed(ctx, sparseScale, false)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	near, far, err := w.addVeth()
	if err != nil {
		return s, err
	}
	if busy {
		stop, err := occupyCores()
		if err != nil {
			return s, err
		}
		defer stop()
	}
	interval := time.Duration(float64(time.Second) / rate)
	slices.SortStableFunc(w.links, func(a, b *benchLink) int { return cmp.Compare(a.ab.Latency, b.ab.Latency) })
	wires := w.links[:pairs]
	measure := pingByKernelClock
	askers := 1
	if program { // one that waits for each answer has no next request meanwhile
		measure = pingByProgramClock
		askers += int(2 * wires[len(wires)-1].ab.Latency / interval)
	}
	wires = slices.Repeat(wires, askers)
	count, interval = max(1, count/askers), interval*time.Duration(askers)
	var forward []probe.Pair
	for _, x := range wires {
		forward = append(forward, probe.Pair{From: x.a, To: x.b})
	}
	plain, err := measure(ctx, slices.Repeat([]probe.Pair{{From: near, To: far}}, len(forward)), count, interval)
	if err != nil {
		return s, err
	}
	if _, err := w.engine.Lateness(ctx, true); err != nil {
		return s, err
	}
	got, err := measure(ctx, forward, count, interval)
	if err != nil {
		return s, err
	}
	late, err := w.engine.Lateness(ctx, false)
	if err != nil {
		return s, err
	}
	s.lateP50, s.lateP99 = milliseconds(late.P50), milliseconds(late.P99)
	s.setErrors(wires, slices.Concat(plain...), got)
	return s, nil
}

func pingByKernelClock(ctx context.Context, pairs []probe.Pair, count int, interval time.Duration) ([][]time.Duration, error) {
	results, err := probe.MeasureRTT(ctx, pairs, count, interval)
	all := make([][]time.Duration, len(results))
	for i, r := range results {
		all[i] = r.Samples
	}
	return all, err
}

func (s *sparse) setErrors(wires []*benchLink, plain []time.Duration, got [][]time.Duration) {
	veth := summarise(plain)
	s.vethMean, s.vethMax = milliseconds(veth.mean), milliseconds(veth.max)
	var all []time.Duration
	for i, samples := range got {
		var extra []time.Duration
		for _, took := range samples {
			extra = append(extra, took-wires[i].ab.Latency-wires[i].ba.Latency-veth.mean)
		}
		s.worstPair = max(s.worstPair, milliseconds(summarise(extra).mean))
		all = append(all, extra...)
	}
	x := summarise(all)
	s.samples, s.extraMean, s.extraP99, s.extraMax = len(all), milliseconds(x.mean), milliseconds(x.p99), milliseconds(x.max)
	s.worstAbove = milliseconds(x.max + veth.mean - veth.max)
}
