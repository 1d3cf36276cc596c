package hbase

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

const (
	benchWorkers = 16
	benchRecords = 1000
)

// BenchmarkClient measures the CPU time per operation, half reads and half updates, on the client's node: through the
// bridge with both its processes, and in a loop on HBase's client (testdata/Loop.java).
//
//	go test -bench Client -benchtime 40000x ./internal/database/hbase/
func BenchmarkClient(b *testing.B) {
	d, in, c := oneNode(b)
	clients := make([]load.Client, benchWorkers)
	for i := range clients {
		var err error
		if clients[i], err = d.Open(b.Context(), c.Properties()); err != nil {
			b.Fatal(err)
		}
		defer clients[i].Close()
	}
	record := make([]load.Field, 10)
	for i := range record {
		record[i] = load.Field{Name: "field" + strconv.Itoa(i), Value: make([]byte, 100)}
	}
	for i := range benchRecords {
		if err := clients[0].Insert(b.Context(), table, "user"+strconv.Itoa(i), record); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("bridge", func(b *testing.B) {
		drive(b, clients, b.N) // warm
		before := cpu(b)
		began := time.Now()
		b.ResetTimer()
		drive(b, clients, b.N)
		b.StopTimer()
		b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "ops/s")
	})
	b.Run("loop", func(b *testing.B) {
		out := filepath.Join(b.TempDir(), "out")
		compileLoop(b, in, out)
		args := append(javaArguments(128*mib, false, ""), "-cp", classpath(out, in.Dir), "Loop", c.Properties()[PropQuorum],
			strconv.Itoa(benchWorkers), strconv.Itoa(b.N), strconv.Itoa(benchRecords))
		text, err := exec.Command(in.Programs["java"], args...).Output()
		if err != nil {
			b.Fatal(err)
		}
		lines := strings.Fields(string(text))
		ns, err := strconv.ParseFloat(lines[len(lines)-1], 64)
		if err != nil {
			b.Fatalf("%v: %s", err, text)
		}
		b.ReportMetric(ns, "cpu-ns/op")
	})
}

// oneNode starts a cluster of one node without HDFS for the test.
func oneNode(b testing.TB) (*HBase, database.Installation, database.Cluster) {
	b.Helper()
	testkit.Need(b, testkit.Installed(Recipe))
	d := New()
	in, err := d.Find("", "")
	if err != nil {
		b.Fatal(err)
	}
	nodes := testhost.Loopback(b, 1)
	c, err := d.Start(b.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in, Options: database.Options{"storage": "directory"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return d, in, c
}

// BenchmarkOpen measures the time to open a driver's first client: the start of a bridge's JVM, its connection, and the
// locations of all regions; or, with a running bridge, only the locations.
//
//	go test -run '^$' -bench Open -benchtime 10x ./internal/database/hbase/
func BenchmarkOpen(b *testing.B) {
	d, _, c := oneNode(b)
	open := func(b *testing.B) {
		for b.Loop() {
			client, err := d.Open(b.Context(), c.Properties())
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := client.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
	b.Run("own", open)
	if err := c.Clear(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("standing", open)
}

// drive executes operations with all clients.
func drive(b *testing.B, clients []load.Client, operations int) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for _, c := range clients {
		workers.Go(func() {
			var fields []load.Field
			value := make([]byte, 100)
			for n := int(next.Add(1)); n <= operations; n = int(next.Add(1)) {
				key := "user" + strconv.Itoa(n%benchRecords)
				var err error
				if n%2 == 0 {
					fields, err = c.Read(b.Context(), table, key, nil, fields[:0])
				} else {
					err = c.Update(b.Context(), table, key, []load.Field{{Name: "field" + strconv.Itoa(n%10), Value: value}})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// cpu returns the CPU time of this process and of its child bridges, in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	total := u.Utime.Nano() + u.Stime.Nano()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	for _, dir := range processes {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // the process may have ended
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil || !strings.Contains(string(line), "bridge.retries=") {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // from the third field on
		if f[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, ticks := range f[11:13] {
			n, err := strconv.ParseInt(ticks, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			total += n * int64(10*time.Millisecond)
		}
	}
	return total
}

func compileLoop(b *testing.B, in database.Installation, out string) {
	b.Helper()
	compilers, err := filepath.Glob(filepath.Join(in.Dir, "lib", compilerPattern))
	if err != nil || len(compilers) == 0 {
		b.Fatalf("no compiler: %v", err)
	}
	jars, err := filepath.Glob(filepath.Join(in.Dir, "lib", "*.jar"))
	if err != nil {
		b.Fatal(err)
	}
	text, err := exec.Command(in.Programs["java"], "-jar", compilers[0], "-source", javaRelease, "-target", javaRelease, "-nowarn",
		"-proc:none", "-cp", strings.Join(jars, ":"), "-d", out, filepath.Join("testdata", "Loop.java")).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, text)
	}
}
