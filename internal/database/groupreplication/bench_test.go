package groupreplication

import (
	"context"
	"testing"
	"time"

	"skerry/internal/machine/host"
)

// BenchmarkForm forms a group of eight and reports the resources of a member.
func BenchmarkForm(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		_, c, nodes := startCluster(b, 8, nil)
		b.ReportMetric(time.Since(began).Seconds(), "s/form")
		b.ReportMetric(memoryOf(b, nodes[:8])/8, "MB/member")
		if err := c.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func memoryOf(b *testing.B, nodes []host.Host) float64 {
	b.Helper()
	var sum int64
	for _, n := range nodes {
		u, err := n.Usage()
		if err != nil {
			b.Fatal(err)
		}
		sum += u.Memory
	}
	return float64(sum) / 1e6
}
