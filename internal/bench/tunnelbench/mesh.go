package tunnelbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"skerry/internal/bench/labbench"
	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/link/probe"
	"skerry/internal/topology"
)

// answerTimeout bounds the wait for an answer over every tunnel.
const answerTimeout = time.Minute

func (o Options) mesh(ctx context.Context) (*Mesh, error) {
	r := &Mesh{Tunnels: o.Tunnels, Rounds: o.Rounds}
	var up, plain []float64
	var memory []int64
	for i := range o.Rounds {
		o.Progress(fmt.Sprintf("%d tunnels, %d of %d", o.Tunnels, i+1, o.Rounds))
		for _, encryption := range []string{topology.WireGuard, ""} {
			spec := topology.Spec{From: "azure8", Encryption: encryption, Mesh: topology.MeshSpec{Links: o.Tunnels, Seed: 7}}
			cloud, err := spec.Build(".", os.ReadFile)
			if err != nil {
				return r, err
			}
			err = o.within(ctx, cloud, func(l *lab.Lab, began time.Time) error {
				ends, times := l.Ends, &plain
				if encryption != "" {
					ends, times = l.TunnelEnds, &up
				}
				if err := answered(ctx, l, ends); err != nil {
					return err
				}
				*times = append(*times, labbench.Milliseconds(time.Since(began)))
				if encryption == "" || l.TunnelPID() == 0 {
					return nil
				}
				bytes, err := proportional(l.TunnelPID())
				memory = append(memory, bytes)
				return err
			})
			if err != nil {
				return r, err
			}
		}
	}
	r.UpMS, r.PlainMS = stats.Median(up), stats.Median(plain)
	if len(memory) > 0 {
		r.ProcessBytes = stats.Median(memory)
	}
	return r, nil
}

// answered waits until a packet has come back over every link, or every tunnel.
func answered(ctx context.Context, l *lab.Lab, ends func(id string) (a, b *lab.End, err error)) error {
	var waiting []probe.Pair
	for _, k := range l.Links() {
		a, b, err := ends(k.ID)
		if err != nil {
			return err
		}
		waiting = append(waiting, probe.Pair{From: a, To: b})
	}
	for began := time.Now(); ; {
		got, err := probe.RTT(ctx, waiting, 1, 0)
		if err != nil {
			return err
		}
		var silent []probe.Pair
		for i, g := range got {
			if g.Lost > 0 {
				silent = append(silent, waiting[i])
			}
		}
		if waiting = silent; len(waiting) == 0 {
			return nil
		}
		if time.Since(began) > answerTimeout {
			return fmt.Errorf("no answer over %d of %d links after %v", len(waiting), len(l.Links()), answerTimeout)
		}
	}
}

// proportional is the memory of a process, what it shares with others divided among them
// (PSS), in bytes.
func proportional(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of the tunnels' process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("memory of the tunnels' process: smaps_rollup has no Pss")
}
