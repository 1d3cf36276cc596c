// Package chaos runs a deployment of Hydra in the namespaces of a lab for minutes under random
// concurrent faults: processes are killed and paused, links cut and made lossy, databases
// restarted, lost, restored to earlier copies and exchanged for those of another log, clocks
// set, and clouds lost. Meanwhile registers must be linearizable, the accounts in every cloud's
// database must add up at any time, and requests of other sites must be rejected. After
// the last fault, the wallet must have executed every acknowledged order once, and both clouds'
// databases must have the same content.
//
//	SKERRY_CHAOS=5m go test -timeout 30m ./test/chaos
//	SKERRY_CHAOS=5m SKERRY_SEED=7 SKERRY_CHAOS_DATABASE=postgres go test ...
//
// After "figures" it prints a row for the table of runs in docs/hydra-guarantees.md.
package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/galera"
	"skerry/internal/database/mysql"
	"skerry/internal/database/postgres"
	"skerry/internal/lab"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/testkit"
)

const (
	// patience bounds the wait for a deployment without faults to recover.
	patience = 3 * time.Minute
	zone     = "hydra.test"
	// restart is the delay before an ended process is restarted. A member does not start while its database is
	// unreachable, and is retried.
	restart = time.Second
	// smallLog detaches a cloud that is unavailable for long; roomyLog has space for several rows of the maximum size.
	smallLog = 2 << 20
	roomyLog = 8 << 20
)

const clouds = `
name: chaos
sites: [{name: aws, nodes: 3}, {name: gcp, nodes: 3}, {name: third, nodes: 2}]
connect: full
defaults: {rtt: 5ms, site_rtt: 0.2ms}
links: [{between: [aws, gcp], rtt: 10ms}]
`

// world is the deployment under test.
type world struct {
	t         *testing.T
	lab       *lab.Lab
	layout    deploy.Layout
	deployed  *deploy.Deployment
	maxLog    int64
	databases map[string]database.Cluster // by cloud; none for SQLite
	operators map[string]*operator        // by cloud
	tables    int                         // number of tables created by faults
	marks     atomic.Int64                // number of rows written by faults
	faults    int

	clocking sync.Mutex
	clocks   map[int]*testkit.WallClock // by process ID
}

func TestChaos(t *testing.T) {
	length := faultDuration(t)
	var err error
	seed := rand.Uint64N(1e6)
	if s := os.Getenv("SKERRY_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	kind := os.Getenv("SKERRY_CHAOS_DATABASE")
	t.Logf("repeat this: SKERRY_CHAOS=%s SKERRY_SEED=%d SKERRY_CHAOS_DATABASE=%s", length, seed, kind)
	w := build(t, kind, roomyLog, nil)
	work := begin(w, seed)
	w.breakThings(rand.New(rand.NewPCG(seed, 99)), length)
	t.Logf("recovered %.1f s after the last fault", w.awaitRecovery().Seconds())
	work.end()
	work.check()
	fmt.Fprintf(t.Output(), "figures: %s\n", work.figures(cmp.Or(kind, "sqlite"), seed, length))
}

// figures are a row of the table of runs.
func (k *work) figures(kind string, seed uint64, length time.Duration) string {
	held := "held"
	if k.w.t.Failed() {
		held = "FAILED"
	}
	return fmt.Sprintf("| %s | %d | %s | %d | %d | %.1f s | %d | %d | %d | %d | %s |", kind, seed, length, k.w.faults,
		k.orders, k.longest.Seconds(), k.history.Len(), k.big.Load(), k.audits.Load(), k.refused.Load(), held)
}

// faultDuration returns the duration of the faults. It skips a test that was not requested.
func faultDuration(t *testing.T) time.Duration {
	t.Helper()
	text := testkit.OptIn(t, "SKERRY_CHAOS", "5m injects faults for five minutes")
	testkit.Need(t, testkit.Root, testkit.TUN)
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return length
}

// build brings up a lab with a deployment, whose clouds use databases of a kind, except those with a URL.
func build(t *testing.T, kind string, maxLog int64, urls map[string]string) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, []byte(clouds), 0o600); err != nil {
		t.Fatal(err)
	}
	topo, err := topology.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, maxLog: maxLog, databases: map[string]database.Cluster{}, operators: map[string]*operator{}, clocks: map[int]*testkit.WallClock{}}
	dir := programs(t)
	w.lab, err = lab.Up(t.Context(), lab.Config{
		Name: "chaos-" + strconv.Itoa(os.Getpid()), Topology: topo, Scale: 1, Exe: filepath.Join(dir, "skerry"), Ephemeral: true,
		StateDir: t.TempDir(), DataDir: dataDir(t), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.lab.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if w.layout, err = deploy.LayoutOnHosts(w.lab.Hosts()); err != nil {
		t.Fatal(err)
	}
	o := deploy.Options{Exe: filepath.Join(dir, "hydra"), Zone: zone, Prefer: "aws", Insecure: true, Wallet: true, MaxLog: w.maxLog, Databases: map[string]string{}}
	maps.Copy(o.Databases, urls)
	for _, c := range w.layout.Clouds {
		if o.Databases[c.Name] == "" {
			if url := w.database(kind, c); url != "" {
				o.Databases[c.Name] = url
			}
		}
		w.operators[c.Name] = newOperator(c, o.Databases[c.Name])
	}
	w.deployed, err = deploy.Launch(t.Context(), w.layout, o, restart, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.saveLogs()
		}
		if err := w.deployed.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// database starts a cloud's server on its edge and returns its URL, "" for SQLite.
func (w *world) database(kind string, c deploy.CloudNodes) string {
	w.t.Helper()
	var d database.Database
	var url func(map[string]string) string
	first := func(hosts string) string { at, _, _ := strings.Cut(hosts, ","); return at }
	switch kind {
	case "", "sqlite":
		return ""
	case "postgres":
		testkit.Need(w.t, testkit.Installed(postgres.Recipe))
		d, url = postgres.New(), func(p map[string]string) string {
			return "postgres://postgres@" + first(p[postgres.PropHosts]) + "/postgres?sslmode=disable"
		}
	case "mariadb":
		testkit.Need(w.t, testkit.Installed(galera.Recipe))
		d, url = galera.New(), func(p map[string]string) string {
			return "mysql://" + mysql.User + "@" + first(p[mysql.PropHosts]) + "/" + mysql.Schema
		}
	default:
		w.t.Fatalf("SKERRY_CHAOS_DATABASE is sqlite, postgres or mariadb, not %s", kind)
	}
	in, err := d.Find("", "")
	if err != nil {
		w.t.Fatal(err)
	}
	started, err := d.Start(w.t.Context(), database.Env{
		Nodes: []host.Host{c.Edge}, Control: c.Edge, Installation: in, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := started.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	w.databases[c.Name] = started
	return url(started.Properties())
}

// programs returns the folder of skerry and hydra: that of SKERRY_EXE, or a new one in which they are built.
func programs(t *testing.T) string {
	t.Helper()
	if exe := os.Getenv("SKERRY_EXE"); exe != "" {
		return filepath.Dir(exe)
	}
	dir := t.TempDir()
	if err := testkit.BuildPrograms(dir, "skerry", "hydra"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// dataDir is a directory that servers without root can access.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "skerry-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// saveLogs copies the logs of a failed deployment to a permanent directory.
func (w *world) saveLogs() {
	dir, err := os.MkdirTemp("", "skerry-chaos-logs-")
	if err != nil {
		w.t.Error(err)
		return
	}
	for _, s := range w.deployed.States() {
		text, err := os.ReadFile(s.Log)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, s.Name+".log"), text, 0o600)
		}
		if err != nil {
			w.t.Error(err)
		}
	}
	w.t.Logf("logs are in %s", dir)
}

// data is a client for given addresses on the node of the DNS server, which has no faults.
func (w *world) data(at ...string) *hydraclient.Client {
	c, err := hydraclient.New(hydraclient.Config{Endpoints: at, Timeout: 20 * time.Second, Dial: w.layout.DNS.Dial})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// balancers are the addresses of the clouds' load balancers.
func (w *world) balancers() (at []string) {
	for _, c := range w.layout.Clouds {
		at = append(at, deploy.HostPort(c.Edge, deploy.PortLB))
	}
	return at
}

// behind is the maximum lag in entries of a database that has caught up: those in flight.
const behind = 200

// awaitRecovery is await for a test that ends if the deployment does not recover.
func (w *world) awaitRecovery(names ...string) time.Duration {
	w.t.Helper()
	took, err := w.await(names...)
	if err != nil {
		w.t.Fatal(err)
	}
	return took
}

// await waits until the databases of all clouds, or of the named ones, serve with a small lag, and returns the
// duration.
func (w *world) await(names ...string) (time.Duration, error) {
	began := time.Now()
	var last error
	for time.Since(began) < patience {
		last = nil
		for _, c := range w.layout.Clouds {
			if len(names) > 0 && !slices.Contains(names, c.Name) {
				continue
			}
			if err := w.serves(c); err != nil {
				last = errors.Join(last, fmt.Errorf("%s: %w", c.Name, err))
			}
		}
		if last == nil {
			return time.Since(began), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, fmt.Errorf("%w after %s: %w", errNotWell, patience, last)
}

// serves returns nil if the first member of a cloud reports that its database serves.
func (w *world) serves(c deploy.CloudNodes) error {
	data := w.data(deploy.HostPort(c.Members[0], deploy.PortAPI))
	defer data.Close()
	s, err := data.Status(w.t.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Databases, func(d api.Database) bool { return d.Cloud == c.Name })
	if s.Leader == "" || s.Problem != "" || i < 0 || s.Databases[i].State != api.StateServing || s.Databases[i].Lag > behind {
		return fmt.Errorf("%w: %+v", errNotWell, s)
	}
	if s.Log.Bytes > w.maxLog+w.maxLog/4 {
		w.t.Errorf("%s: the log takes %d bytes, %d were allowed", c.Name, s.Log.Bytes, w.maxLog)
	}
	return nil
}

var errNotWell = errors.New("not recovered")
