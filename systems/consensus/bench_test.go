package consensus_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/systems/consensus"
)

// BenchmarkPropose proposes entries of 100 bytes to the leader of three members on loopback.
func BenchmarkPropose(b *testing.B) {
	for _, proposers := range []int{1, 16, 240} {
		b.Run(fmt.Sprintf("proposers=%d", proposers), func(b *testing.B) {
			lead := benchGroup(b)
			ctx := context.Background()
			data := make([]byte, 100)
			before := lead.Status()
			used := cpuTime(b)
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range proposers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := lead.Propose(ctx, data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after := lead.Status()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric((cpuTime(b)-used).Seconds()*1e6/float64(b.N), "cpu-µs/entry")
			b.ReportMetric(float64(after.Synced-before.Synced)/float64(after.Syncs-before.Syncs), "entries/sync")
		})
	}
}

// cpuTime returns the CPU time used by this process, excluding other processes.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// benchGroup starts three members and returns the leader's node.
func benchGroup(b *testing.B) *consensus.Node {
	var all []consensus.Member
	var listeners []net.Listener
	for i := range 3 {
		l := listen(b)
		listeners = append(listeners, l)
		all = append(all, consensus.Member{ID: uint64(i + 1), Name: fmt.Sprintf("m%d", i+1), Addr: l.Addr().String(), Role: consensus.Voter})
	}
	var nodes []*consensus.Node
	for i, self := range all {
		n, err := consensus.Open(context.Background(), consensus.Config{Cluster: "bench", Self: self, Members: all, Dir: b.TempDir(), Listener: listeners[i]})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
		ctx, cancel := context.WithCancel(context.Background())
		b.Cleanup(cancel)
		go func() {
			for from := uint64(1); ; {
				entries, err := n.Entries(ctx, from, 1<<20)
				if err != nil {
					return
				}
				from = entries[len(entries)-1].Index + 1
				n.Applied(from - 1)
			}
		}()
	}
	if _, err := nodes[0].Propose(soon(b), nil); err != nil {
		b.Fatal(err)
	}
	lead, _ := nodes[0].Leader()
	return nodes[lead.ID-1]
}
