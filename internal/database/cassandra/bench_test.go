package cassandra

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit/testhost"
)

// BenchmarkClient compares the client with the shortest loop over the driver, on one local member: cpu-us/op is the
// client's CPU time.
func BenchmarkClient(b *testing.B) {
	c := startCluster(b, testhost.Loopback(b, 1), nil)
	client := dbtest.Open(b, New(), c.Properties())
	var record []load.Field
	for i := range defaultFields {
		record = append(record, load.Field{Name: fmt.Sprint("field", i), Value: bytes.Repeat([]byte{'x'}, 100)})
	}
	const records = 500
	key := func(i int) string { return fmt.Sprintf("user%03d", i%records) }
	for i := range records {
		if err := client.Insert(b.Context(), "", key(i), record); err != nil {
			b.Fatal(err)
		}
	}
	driver := driverSession(b, c.Properties()[PropHosts])
	var columns []string
	var into []any
	values := make([][]byte, defaultFields)
	for i := range values {
		columns, into = append(columns, fmt.Sprint("field", i)), append(into, &values[i])
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	read := "SELECT " + strings.Join(columns, ", ") + " FROM usertable WHERE y_id = ?"

	run := func(name string, op func(i int) error) {
		b.Run(name, func(b *testing.B) {
			began, i := cpu(b), 0
			for b.Loop() {
				if err := op(i); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(i), "cpu-us/op")
		})
	}
	run("driver/read", func(i int) error { return driver.Query(read, key(i)).ScanContext(ctx, into...) })
	var fields []load.Field
	run("client/read", func(i int) (err error) {
		fields, err = client.Read(ctx, "", key(i), nil, fields[:0])
		return err
	})
	run("driver/update", func(i int) error {
		return driver.Query("UPDATE usertable SET field0 = ? WHERE y_id = ?", record[0].Value, key(i)).ExecContext(ctx)
	})
	run("client/update", func(i int) error { return client.Update(ctx, "", key(i), record[:1]) })
}

// driverSession is a session of the driver with the client's configuration.
func driverSession(b *testing.B, hosts string) *gocql.Session {
	b.Helper()
	g := gocql.NewCluster(strings.Split(hosts, ",")...)
	g.Keyspace, g.WriteCoalesceWaitTime = defaultKeyspace, 0
	g.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy(), gocql.ShuffleReplicas())
	s, err := g.CreateSession()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// cpu returns the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStart forms clusters: ready-s is the time until one serves, cpu-s/node and MB/node the CPU time and memory
// of a member then.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{3, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				began := time.Now()
				c := startCluster(b, testhost.Loopback(b, n), database.Options{"start_timeout": "10m"})
				b.ReportMetric(time.Since(began).Seconds(), "ready-s")
				var taken int64
				var used time.Duration
				for _, m := range c.All() {
					pid := m.Server().PID()
					taken += resident(b, pid)
					used += cpuOf(b, pid)
				}
				b.ReportMetric(float64(taken)/float64(n)/1e6, "MB/node")
				b.ReportMetric(used.Seconds()/float64(n), "cpu-s/node")
				if err := c.Stop(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChange lets a fourth node join three with 10,000 records and leave, and halts and revives one.
func BenchmarkChange(b *testing.B) {
	nodes := testhost.Loopback(b, 4)
	c := startCluster(b, nodes[:3], database.Options{"replication_factor": 2})
	client := dbtest.Open(b, New(), c.Properties())
	value := []load.Field{{Name: "field0", Value: bytes.Repeat([]byte{'x'}, 1000)}}
	for i := range 10_000 {
		if err := client.Insert(b.Context(), "", fmt.Sprint("user", i), value); err != nil {
			b.Fatal(err)
		}
	}
	seconds := func(name string, change func() error) {
		began := time.Now()
		if err := change(); err != nil {
			b.Fatal(name, err)
		}
		b.ReportMetric(time.Since(began).Seconds(), name+"-s")
	}
	for b.Loop() {
		join, err := c.Join(b.Context(), nodes[3])
		if err != nil {
			b.Fatal(err)
		}
		leave, err := c.Leave(b.Context(), nodes[3], database.Graceful)
		if err != nil {
			b.Fatal(err)
		}
		for name, d := range map[string]time.Duration{"join-accepted": join.Accepted, "join": join.Complete,
			"leave-accepted": leave.Accepted, "leave": leave.Complete} {
			b.ReportMetric(d.Seconds(), name+"-s")
		}
		seconds("drain", func() error { return c.Halt(b.Context(), nodes[2], database.Graceful) })
		seconds("revive", func() error { return c.Revive(b.Context(), nodes[2]) })
		if _, err := c.Join(b.Context(), nodes[3]); err != nil {
			b.Fatal(err)
		}
		seconds("lost", func() error {
			_, err := c.Leave(b.Context(), nodes[3], database.Abrupt)
			return err
		})
	}
}

// resident returns the memory of a process in bytes.
func resident(b *testing.B, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// tick is the unit of times in /proc, the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuOf returns the CPU time of a process.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold blanks
	f := strings.Fields(rest)
	var ticks int64
	for _, at := range []int{11, 12} { // utime, stime
		n, err := strconv.ParseInt(f[at], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
