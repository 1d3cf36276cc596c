package oracle

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"skerry/internal/database/redis"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// BenchmarkRedis compares the CPU time of the load driver with that of YCSB's client: workload C against one Redis on
// loopback, in alternating rounds. SKERRY_YCSB is the target folder of bench/ycsb-java; run.sh there builds it. -benchtime 5x
// makes five rounds; the metrics are their medians. "without-start" leaves out the CPU time that the JVM needs to start,
// measured by a run of one operation.
func BenchmarkRedis(b *testing.B) {
	const records, operations = 10_000, 400_000
	ycsb := testkit.OptIn(b, "SKERRY_YCSB", "the target folder of bench/ycsb-java, which run.sh there builds")
	testkit.Need(b, testkit.Installed(redis.Recipe))
	programs := b.TempDir()
	if err := testkit.BuildPrograms(programs, "skerry"); err != nil {
		b.Fatal(err)
	}
	addr := startRedis(b)
	settings := func(threads, operations int) []string {
		return []string{"-p", "recordcount=" + strconv.Itoa(records), "-p", "operationcount=" + strconv.Itoa(operations),
			"-p", "redis.host=" + addr, "-threads", strconv.Itoa(threads)}
	}
	skerry := func(phase string, threads, operations int) *exec.Cmd {
		args := append([]string{"ycsb", phase, "redis", "-P", "workloadc"}, settings(threads, operations)...)
		return exec.CommandContext(b.Context(), filepath.Join(programs, "skerry"), args...)
	}
	java := func(threads, operations int) *exec.Cmd {
		args := []string{"-cp", filepath.Join(ycsb, "*") + ":" + filepath.Join(ycsb, "lib", "*"), "site.ycsb.Client", "-t",
			"-db", "skerry.bench.RedisClient", "-p", "workload=site.ycsb.workloads.CoreWorkload",
			"-p", "readproportion=1", "-p", "updateproportion=0", "-p", "requestdistribution=zipfian"}
		return exec.CommandContext(b.Context(), "java", append(args, settings(threads, operations)...)...)
	}
	cpuSeconds(b, skerry("load", 1, 1), records)
	start := cpuSeconds(b, java(1, 1), 1)
	for _, threads := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%d threads", threads), func(b *testing.B) {
			var ours, theirs, kind []float64
			for b.Loop() {
				ours = append(ours, operations/cpuSeconds(b, skerry("run", threads, operations), operations))
				used := cpuSeconds(b, java(threads, operations), operations)
				theirs, kind = append(theirs, operations/used), append(kind, operations/(used-start))
			}
			b.ReportMetric(median(ours), "skerry-ops/cpu-s")
			b.ReportMetric(median(theirs), "ycsb-ops/cpu-s")
			b.ReportMetric(median(ours)/median(theirs), "ratio")
			b.ReportMetric(median(ours)/median(kind), "ratio-without-start")
		})
	}
}

// startRedis starts a Redis that keeps nothing and returns its IP address.
func startRedis(b *testing.B) string {
	b.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.Fatal(err)
	}
	h := testhost.Loopback(b, 1)[0]
	p, err := h.Start(b.Context(), host.Command{Name: "redis", Path: in.Programs["redis-server"], Env: in.Env, Dir: h.Dir(),
		Args: []string{"--bind", h.Addr(), "--save", "", "--protected-mode", "no"}, Log: filepath.Join(h.Dir(), "log")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Kill() })
	for {
		c, err := net.Dial("tcp", h.Addr()+":6379")
		if err == nil {
			c.Close()
			return h.Addr()
		}
		select {
		case <-p.Done():
			b.Fatal(p.Tail(10))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var okLine = regexp.MustCompile(`(?m)^\[(?:READ|INSERT)\], Return=OK, (\d+)$`)

// cpuSeconds runs a client, which must report the wanted number of successful operations, and returns its CPU time.
func cpuSeconds(b *testing.B, c *exec.Cmd, want int) float64 {
	b.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v\n%s", c, err, out)
	}
	if m := okLine.FindSubmatch(out); m == nil || string(m[1]) != strconv.Itoa(want) {
		b.Fatalf("%v: want %d successful operations:\n%s", c, want, out)
	}
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
