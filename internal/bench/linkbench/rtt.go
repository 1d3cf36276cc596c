package linkbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/event/stress"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/topology"
)

// RTT is the error of measured round trips relative to the configured ones, over all directed
// pairs of azure8.
type RTT struct {
	// Scale of the latencies: 1 is the full matrix (5X), 0.2 a fifth of it (X).
	Scale float64 `json:"scale"`
	// Beside names the concurrent load: nothing, busy (a loop for each core), tcp (one
	// unlimited stream on one of the links), or steal (one processor is taken away, Steal of
	// the time).
	Beside string  `json:"beside"`
	Steal  float64 `json:"steal,omitempty"`
	// StreamBPS is what that stream carried.
	StreamBPS float64 `json:"stream_bps,omitempty"`
	Pairs     int     `json:"pairs"`
	Samples   int     `json:"samples"`
	Lost      int     `json:"lost"`
	// Errors in ms: measured minus set, of the absolute values.
	ErrorMean float64 `json:"error_mean_ms"`
	ErrorP99  float64 `json:"error_p99_ms"`
	ErrorMax  float64 `json:"error_max_ms"`
	// SameLink is the errors on the link of the stream alone.
	SameLink *SameLink `json:"same_link,omitempty"`
	// LateP99 and LateMax are the emulator's own account, in ms, for one direction.
	LateP99 float64 `json:"late_p99_ms"`
	LateMax float64 `json:"late_max_ms"`
}

// SameLink is errors in ms on one link.
type SameLink struct {
	Samples   int     `json:"samples"`
	ErrorMean float64 `json:"error_mean_ms"`
	ErrorP99  float64 `json:"error_p99_ms"`
	ErrorMax  float64 `json:"error_max_ms"`
}

// echoBytes is the layer-3 size of the probes; they take time on links of little bandwidth.
const echoBytes = 84

func (b *bench) measureRTT(ctx context.Context) error {
	for _, scale := range []float64{0.2, 1} {
		for _, beside := range []string{"nothing", "busy", "tcp", "steal"} {
			if beside == "steal" && b.Steal == 0 {
				continue
			}
			b.Progress("round trips at scale " + format(scale) + " beside " + beside)
			r, err := b.measureRTTBeside(ctx, scale, beside)
			if err != nil {
				return err
			}
			b.result.RTT = append(b.result.RTT, r)
		}
	}
	return nil
}

// newAzureTestbed makes the links of azure8 at a scale. Beside an unlimited stream the links have no
// bandwidth: a stream would fill the queue of one that has, and that delays as it should.
func (b *bench) newAzureTestbed(ctx context.Context, scale float64, limited bool) (*testbed, error) {
	t, err := topology.Load("azure8")
	if err != nil {
		return nil, err
	}
	t = topology.Scale(t, scale)
	index := map[string]int{}
	for i, n := range t.Nodes {
		index[n.Name] = i
	}
	var edges [][2]int
	var ab, ba []link.Quality
	for _, l := range t.Links {
		if !limited {
			l.AB.Bandwidth, l.BA.Bandwidth = 0, 0
		}
		edges = append(edges, [2]int{index[l.A], index[l.B]})
		ab, ba = append(ab, l.AB), append(ba, l.BA)
	}
	return b.newTestbed(ctx, len(t.Nodes), edges, ab, ba)
}

func (b *bench) measureRTTBeside(ctx context.Context, scale float64, beside string) (r RTT, err error) {
	w, err := b.newAzureTestbed(ctx, scale, beside != "tcp")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r = RTT{Scale: scale, Beside: beside}
	switch beside {
	case "busy":
		stop, err := occupyCores()
		if err != nil {
			return r, err
		}
		defer stop()
	case "steal":
		stop, err := stealCPU(b.Thief, b.Steal)
		if err != nil {
			return r, err
		}
		defer stop()
		r.Steal = b.Steal
	case "tcp":
		s, err := startTCPStream(w.links[0].a, w.links[0].b)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		if err := linger.For(ctx, pick(b, 4*time.Second, 2*time.Second)); err != nil { // past its slow start
			return r, err
		}
		mark := s.mark()
		defer func() { r.StreamBPS = s.since(mark) }()
	}
	if _, err := w.engine.Lateness(ctx, true); err != nil {
		return r, err
	}
	results, err := probe.MeasureRTT(ctx, directedPairs(w.links), pick(b, 300, 40), pick(b, 50*time.Millisecond, 25*time.Millisecond))
	if err != nil {
		return r, err
	}
	late, err := w.engine.Lateness(ctx, false)
	if err != nil {
		return r, err
	}
	r.LateP99, r.LateMax = milliseconds(late.P99), milliseconds(late.Max)
	r.setErrors(w.links, results)
	return r, nil
}

func (r *RTT) setErrors(wires []*benchLink, results []probe.RTTResult) {
	var all []time.Duration
	for i, got := range results {
		w := wires[i/2]
		want := w.ab.Latency + w.ba.Latency + transmissionTime(w.ab) + transmissionTime(w.ba)
		var errs []time.Duration
		for _, s := range got.Samples {
			errs = append(errs, (s - want).Abs())
		}
		r.Lost += got.Lost
		all = append(all, errs...)
		if r.Beside == "tcp" && i == 0 {
			s := summarise(errs)
			r.SameLink = &SameLink{len(errs), milliseconds(s.mean), milliseconds(s.p99), milliseconds(s.max)}
		}
	}
	s := summarise(all)
	r.Pairs, r.Samples = len(results), len(all)
	r.ErrorMean, r.ErrorP99, r.ErrorMax = milliseconds(s.mean), milliseconds(s.p99), milliseconds(s.max)
}

func transmissionTime(q link.Quality) time.Duration {
	if q.Bandwidth == 0 {
		return 0
	}
	return time.Duration(echoBytes * 8 * 1e9 / q.Bandwidth)
}

func occupyCores() (stop func(), err error) {
	var loops []*exec.Cmd
	stop = func() {
		for _, c := range loops {
			_ = c.Process.Kill()
			_ = c.Wait() // killed: always an error
		}
	}
	for range runtime.NumCPU() {
		c := exec.Command("/bin/sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start a busy loop: %w", err)
		}
		loops = append(loops, c)
	}
	return stop, nil
}

// stealCPU has a process take processors away for a share of the time, until stop is called.
func stealCPU(command []string, share float64) (stop func(), err error) {
	c := exec.Command(command[0], append(command[1:len(command):len(command)], strconv.FormatFloat(share, 'g', -1, 64))...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start a thief of processors: %w", err)
	}
	stop = func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait() // killed: always an error
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != stress.Ready {
		stop()
		return nil, fmt.Errorf("a thief of processors said %q: %w", line, errors.Join(err, errNoRealTime))
	}
	return stop, nil
}

// errNoRealTime is the reason why nothing is measured with stolen CPU time.
var errNoRealTime = errors.New("it may not have the highest real-time priority")
