// Package dbtest is the conformance suite of all databases. It runs against real servers on the loopback.
//
//	func TestConformance(t *testing.T) {
//		dbtest.Run(t, dbtest.Config{About: redis.About, Port: 6379})
//	}
//
// Claimed capabilities are tested; operations without the capability must be refused. A database that is not installed is
// skipped, or fails if SKERRY_REQUIRE names it. Environment variables:
//
//	SKERRY_LONG=1       fill larger disks too, if SKERRY_REQUIRE names the test
//	SKERRY_CHANGES=20   random joins and leaves under load, instead of 2
//	SKERRY_SEED=7       their seed, which is printed otherwise
//	SKERRY_TIMEOUT=15m  bounds each start, change, halt and revival: for busy machines
//	SKERRY_MATRIX=DIR   write the results to DIR/NAME.json: see Row
package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// Config names the database to test and describes its properties for the tests.
type Config struct {
	About database.About
	// New replaces About.New, for databases without an About and for clients that dial from a node.
	New func() database.Database
	// Variant distinguishes several conformance tests of a database ("replicas").
	Variant string
	// Version and From choose an installation, as in database.Locate.
	Version, From string
	// Nodes is the number of initial members; if 0, the larger of 3 and the minimum of the database.
	Nodes int
	// Spare is the number of nodes that may join; if 0, 2 for databases that can be resized.
	Spare   int
	Options database.Options
	// BadOptions are options that Check must refuse, each added to Options. An unknown name is always tried.
	BadOptions []database.Options
	// Properties are added to the cluster's properties for clients (consistency levels).
	Properties map[string]string
	// Port is a port on which every server listens; 0 omits the test of a port in use.
	Port int
	// Survives: an acknowledged row survives kill -9 and revival of one member. LeavesAbruptly: it survives an abrupt leave.
	Survives, LeavesAbruptly bool
	// Upsert: an update creates a missing row. BlindDelete: a delete of a missing row succeeds.
	Upsert, BlindDelete bool
	// Unordered means that scans do not follow the order of keys (Cassandra's follow hashes).
	Unordered bool
	// DiskFull is the size of each node's disk in the test of full disks, in bytes. 0 omits the test.
	DiskFull int64
	// DiskOptions are added to Options for it.
	DiskOptions database.Options
	// KillJoiner is the time after which a joining node is killed, 50 ms if 0. A second joiner is killed at its start.
	KillJoiner time.Duration
	// Rows is the number of rows of the load test; 500 if 0.
	Rows int64
	// Timeout bounds each start, change of membership, halt and revival; 3 minutes if 0.
	Timeout time.Duration
	// Hosts creates the nodes; testhost.Loopback if nil.
	Hosts func(t testing.TB, n int) []host.Host
}

type suite struct {
	Config
	db    database.Database
	can   database.Capabilities
	in    database.Installation
	row   *Row
	hosts []*hostRecorder
}

// RunOtherSeries tests each series of a database except the default one.
func RunOtherSeries(t *testing.T, c Config) {
	for _, r := range c.About.Recipes[1:] {
		t.Run(r.Series, func(t *testing.T) {
			c := c
			c.Version = r.Series
			Run(t, c)
		})
	}
}

// Run tests a database.
func Run(t *testing.T, c Config) {
	if c.New == nil {
		c.New = c.About.New
	}
	s := &suite{Config: c, db: c.New()}
	name := s.db.Name()
	if c.Version != "" {
		name += "@" + c.Version
	}
	testkit.Need(t, testkit.Feature{Name: name, Missing: func() string {
		for _, r := range c.About.Recipes {
			if c.Version != "" && r.Series != c.Version {
				continue
			}
			if why := testkit.SkipReason(r, name); why != "" {
				return why
			}
			break
		}
		var err error
		if s.in, err = database.Locate(s.db, c.Version, c.From); err != nil {
			return err.Error()
		}
		return ""
	}})
	s.setDefaults(t)
	s.row = newRow(name, s.in, s.Config)
	t.Cleanup(func() { s.row.publish(t) })

	s.runPart(t, "options", s.testOptions)
	s.runPart(t, "serving", s.testServing)
	s.runPart(t, "faults", s.testFaults)
	s.runPart(t, "disk_full", s.testDiskFull)
}

// setDefaults sets the defaults of omitted fields.
func (s *suite) setDefaults(t *testing.T) {
	s.can = s.db.Capabilities()
	s.Nodes = cmp.Or(s.Nodes, max(3, s.can.MinNodes))
	if s.can.MaxNodes > 0 {
		s.Nodes = min(s.Nodes, s.can.MaxNodes)
	}
	if s.can.Resize {
		s.Spare = cmp.Or(s.Spare, 2)
	}
	s.Rows = cmp.Or(s.Rows, 500)
	s.KillJoiner = cmp.Or(s.KillJoiner, 50*time.Millisecond)
	s.Timeout = cmp.Or(settingTime(t, "SKERRY_TIMEOUT"), s.Timeout, 3*time.Minute)
	if s.Hosts == nil {
		s.Hosts = testhost.Loopback
	}
}

func (s *suite) runPart(t *testing.T, aspect string, f func(t *testing.T)) {
	t.Run(aspect, func(t *testing.T) {
		defer s.row.recordAspect(t, aspect)
		f(t)
	})
}

func (s *suite) testServing(t *testing.T) {
	s.hosts = s.newHosts(t)
	began := time.Now()
	cluster := s.startCluster(t)
	s.row.setFigure("ready_seconds", time.Since(began).Seconds())

	s.runPart(t, "status", func(t *testing.T) { s.testStatus(t, cluster) })
	s.runPart(t, "records", func(t *testing.T) { s.testRecords(t, cluster) })
	s.runPart(t, "values", func(t *testing.T) { s.testValues(t, cluster) })
	s.runPart(t, "scan", func(t *testing.T) { s.testScan(t, cluster) })
	s.runPart(t, "load", func(t *testing.T) { s.testLoad(t, cluster) })
	s.runPart(t, "external", func(t *testing.T) { s.testExternal(t, cluster) })
	if t.Failed() {
		t.Fatal("skipped: the cluster did not pass the earlier tests")
	}
	s.runPart(t, "refusals", func(t *testing.T) { s.testRefusals(t, cluster) })
	for _, part := range []struct {
		aspect string
		test   func(*testing.T, database.Cluster)
	}{
		{"churn", s.testChurn}, {"halt", s.testHalt}, {"kill", s.testKill}, {"lost_joiner", s.testLostJoiner},
	} {
		s.runPart(t, part.aspect, func(t *testing.T) {
			if err := cluster.Err(); err != nil {
				t.Skipf("the cluster has failed: %v", err)
			}
			part.test(t, cluster)
		})
	}
	s.runPart(t, "stop", func(t *testing.T) { s.testStop(t, cluster) })
}

// newEnv returns the cluster's environment. The last host runs admin commands and clients.
func (s *suite) newEnv(t testing.TB) database.Env {
	var nodes []host.Host
	for _, h := range s.hosts[:s.Nodes] {
		nodes = append(nodes, h)
	}
	return database.Env{
		Nodes: nodes, Control: s.hosts[len(s.hosts)-1], Installation: s.in, Options: s.Options,
		Log: slog.New(slog.DiscardHandler), Progress: func(step string) { t.Log(step) },
	}
}

func (s *suite) startCluster(t *testing.T) database.Cluster {
	t.Helper()
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	c, err := s.db.Start(ctx, s.newEnv(t))
	if err != nil {
		t.Fatalf("starting %s: %v", s.db.Name(), err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by then.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.Timeout)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stopping %s: %v", s.db.Name(), err)
		}
	})
	return c
}

func (s *suite) withTimeout(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), s.Timeout, fmt.Errorf("not done after %v", s.Timeout))
}

func (s *suite) clientOpener(c database.Cluster, more ...string) load.OpenClient {
	return func(ctx context.Context) (load.Client, error) {
		properties := make(map[string]string)
		for k, v := range c.Properties() {
			properties[k] = v
		}
		for k, v := range s.Properties {
			properties[k] = v
		}
		for i := 0; i+1 < len(more); i += 2 {
			properties[more[i]] = more[i+1]
		}
		return s.db.Open(ctx, properties)
	}
}

func (s *suite) openClient(t *testing.T, c database.Cluster, more ...string) load.Client {
	t.Helper()
	client, err := s.clientOpener(c, more...)(t.Context())
	if err != nil {
		t.Fatalf("opening a client: %v", err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("closing a client: %v", err)
		}
	})
	return client
}

func (s *suite) clearTable(t *testing.T, c database.Cluster) {
	t.Helper()
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	if err := c.Clear(ctx); err != nil {
		t.Fatalf("clearing the table: %v", err)
	}
	if n, err := c.Count(ctx); err != nil || n != 0 {
		t.Fatalf("count after clearing the table: %d, %v", n, err)
	}
}

// settingInt reads a number from an environment variable.
func settingInt(t testing.TB, name string, missing int64) int64 {
	t.Helper()
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return missing
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is not a whole number", name, text)
	}
	return n
}

func settingTime(t testing.TB, name string) time.Duration {
	t.Helper()
	text := strings.TrimSpace(os.Getenv(name))
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s=%s is not a duration such as 15m", name, text)
	}
	return d
}
