package machinebench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/bench/labbench"
	"skerry/internal/bench/tcpstream"
	"skerry/internal/bench/tunnelbench"
	"skerry/internal/evidence/stats"
	"skerry/internal/kernel/netns"
	"skerry/internal/lab"
	"skerry/internal/run/across"
)

// Stream is one TCP stream over an emulated link between two machines, after its slow start.
type Stream struct {
	Between   string  `json:"between"` // encrypted, plain, or "one machine"
	LatencyMS float64 `json:"latency_ms"`
	// BPS is the payload carried in bit/s, a median; Least and Most are of the rounds.
	BPS      float64 `json:"bps"`
	Least    float64 `json:"least_bps"`
	Most     float64 `json:"most_bps"`
	Rounds   int     `json:"rounds"`
	ReachBPS float64 `json:"reach_bps,omitempty"`
}

const (
	streamLatency = 10 * time.Millisecond
	slowStart     = 3 * time.Second
)

func (o Options) streams(ctx context.Context) (all []Stream, err error) {
	r, err := newRoom(o.Exe, 2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	cloud := tunnelbench.Pair(streamLatency)
	cloud.Encryption = ""
	for _, x := range []Stream{{Between: "one machine"}, {Between: across.Plain, ReachBPS: 5e9}, {Between: across.Encrypted, ReachBPS: 1.5e9}} {
		x.LatencyMS, x.Rounds = labbench.Milliseconds(streamLatency), o.Rounds
		terms := across.Terms{Place: map[string]string{"a": "m1", "b": "m2"}, Between: x.Between}
		if x.ReachBPS == 0 {
			terms = across.Terms{Place: map[string]string{"*": "m1"}}
		}
		var bps []float64
		for i := range o.Rounds {
			o.Progress(fmt.Sprintf("one stream, %s, %d of %d", x.Between, i+1, o.Rounds))
			err := r.on(ctx, o, lab.Config{Topology: cloud}, terms, func(l *lab.Lab) error {
				ends, err := inside(l, "a", "b")
				if err != nil {
					return err
				}
				got, err := tcpstream.Goodput(ctx, ends[0], ends[1], slowStart, time.Duration(o.Seconds)*time.Second)
				bps = append(bps, got)
				return err
			})
			if err != nil {
				return all, err
			}
		}
		x.BPS = stats.Median(bps)
		x.Least, x.Most = slices.Min(bps), slices.Max(bps)
		all = append(all, x)
	}
	return all, nil
}

// space is the namespace of a node: pretended machines' can be entered from here.
type space struct{ path, addr string }

// Do implements probe.Inside.
func (s space) Do(f func() error) error { return netns.Do(s.path, f) }

// Addr implements probe.Inside.
func (s space) Addr() string { return s.addr }

var errNoNode = errors.New("no machine has the node")

func inside(l *lab.Lab, nodes ...string) ([]space, error) {
	all := make([]space, len(nodes))
	for i, name := range nodes {
		for _, m := range l.Machines() {
			for _, n := range m.Facts().Nodes {
				if n.Name != name {
					continue
				}
				if all[i] = (space{n.Netns, n.Addr}); !strings.HasPrefix(n.Netns, "/") {
					all[i].path = filepath.Join("/run/netns", n.Netns)
				}
			}
		}
		if all[i].path == "" {
			return nil, fmt.Errorf("%w: %s", errNoNode, name)
		}
	}
	return all, nil
}
