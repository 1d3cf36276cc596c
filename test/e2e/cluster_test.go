package e2e

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database/redis"
	"skerry/internal/record"
	"skerry/internal/testkit"
)

// ownServer is a Redis server that the test starts like a user.
type ownServer struct {
	*running
	addr   string
	client *goredis.Client
}

// startServer starts a server on loopback and waits until it serves.
func (b *bench) startServer(addr string, args ...string) ownServer {
	b.t.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.t.Fatal(err)
	}
	host, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command(in.Programs["redis-server"], append([]string{
		"--bind", host, "--port", port, "--save", "", "--protected-mode", "no", "--dir", b.t.TempDir()}, args...)...)
	cmd.Env = append(cmd.Environ(), in.Env...)
	s := ownServer{&running{t: b.t, exe: b.exe, cmd: cmd, done: make(chan struct{})}, addr, goredis.NewClient(&goredis.Options{Addr: addr})}
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	s.start()
	b.t.Cleanup(func() { s.client.Close() })
	b.await("Redis at "+addr, func() bool { return strings.Contains(s.stdout.String(), "Ready to accept connections") })
	return s
}

// addForeign writes keys of another owner. Some resemble Skerry's.
func (s ownServer) addForeign() {
	s.t.Helper()
	for i := range 500 {
		for _, key := range []string{"user", "shop:user", "skerry_", "skerry_0123456789abcdef:user"} {
			if err := s.client.Set(s.t.Context(), fmt.Sprint(key, i), i, 0).Err(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if err := s.client.ZAdd(s.t.Context(), "_indices", goredis.Z{Member: "user1"}).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// checksum digests all keys and values of the server.
func (s ownServer) checksum() string {
	s.t.Helper()
	all, err := s.client.Keys(s.t.Context(), "*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	var sum [sha256.Size]byte
	for _, key := range all { // the order of keys does not matter to a sum
		value, err := s.client.Dump(s.t.Context(), key).Result()
		if err != nil {
			s.t.Fatal(err)
		}
		for i, x := range sha256.Sum256([]byte(key + "=" + value)) {
			sum[i] ^= x
		}
	}
	return fmt.Sprintf("%d keys %x", len(all), sum)
}

// onCluster is an experiment on a cluster that Skerry did not start.
func onCluster(cluster string, more ...string) string {
	return "name: own\ndatabase: {name: redis, cluster: " + cluster + "}\n" +
		"workload: {name: a, records: 300, threads: 4}\nwarmup: 200ms\nretries: 0\n" + strings.Join(more, "\n") + "\n"
}

const brief = "stop: {time: 1s}"

// Five lines measure the user's own server: the record lists the measured and the missing figures, and nothing remains.
func TestOwnServerIsMeasured(t *testing.T) {
	testkit.Need(t, testkit.FrontEnd)
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	r := b.run(0, "run", b.write("own.yaml", onCluster("[\""+s.addr+"\"]", "stop: {time: 2s}", "matrix: {workload: [a, e]}", "repetitions: 2",
		"audit: true", "seed: 1")))
	sum := b.summary(b.path("runs/latest"))
	if len(sum.Trials) != 4 {
		t.Fatalf("%d trials, want 4\n%s", len(sum.Trials), r.stderr.String())
	}
	for _, trial := range sum.Trials {
		if trial.State != record.TrialOK || trial.Audit == nil || trial.Goodput <= 0 || trial.Traffic != nil || trial.Outcomes.Failed > 0 {
			t.Errorf("trial %d: %s %s, audit %v, %v operations/s, traffic %v", trial.ID, trial.State, trial.Error, trial.Audit, trial.Goodput, trial.Traffic)
		}
		if l := trial.Fidelity.Links; len(l) != 1 || l[0].To != s.addr || !l[0].Answered || !l[0].Real {
			t.Errorf("trial %d: round trips before the workload: %+v", trial.ID, l)
		}
	}
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
	for _, args := range [][]string{{"report"}, {"compare", "runs/latest", "runs/latest"}} {
		b.run(0, args...)
	}
}

// A run that Ctrl-C ends drops its table.
func TestInterruptedRunDropsItsTable(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	r := b.command("run", b.write("own.yaml", onCluster("[\""+s.addr+"\"]", "stop: {time: 60s}"))).start()
	b.measuring(b.path("runs/latest"))
	r.signal(syscall.SIGINT)
	if code := r.wait(); code == 0 {
		t.Errorf("exit 0 after Ctrl-C\n%s", r.stderr.String())
	}
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
}

// Errors of a cluster or its commands contain the name of the server or command, and nothing remains.
func TestInvalidClustersAreReported(t *testing.T) {
	b := newBench(t)
	good := b.startServer(testkit.Address(t))
	good.addForeign()
	before := good.checksum()
	secret := b.startServer(testkit.Address(t), "--requirepass", "correct horse")
	replica := b.startServer(testkit.Address(t), "--replicaof", strings.ReplaceAll(good.addr, ":", " "))
	none, silent := testkit.Address(t), testkit.SilentServer(t)
	b.write("battery", "staple\n")
	http := b.httpServer()
	for _, c := range []struct {
		name, cluster string
		want          []string
	}{
		{"no server answers", fmt.Sprintf("[%q]", none), []string{none, "connection refused"}},
		{"one of two does not answer", fmt.Sprintf("[%q, %q]", good.addr, none), []string{none, "connection refused"}},
		{"another protocol", fmt.Sprintf("[%q]", http), []string{http}},
		{"a server that says nothing", fmt.Sprintf("{servers: [%q], properties: {redis.timeout: 500}}", silent), []string{silent}},
		{"authentication", fmt.Sprintf("[%q]", secret.addr), []string{secret.addr, "NOAUTH"}},
		{"wrong password", fmt.Sprintf("{servers: [%q], password: {file: battery}}", secret.addr),
			[]string{secret.addr, "WRONGPASS", "check user, password and tls"}},
		{"TLS to a server without it", fmt.Sprintf("{servers: [%q], tls: true}", good.addr), []string{good.addr, "does this port use TLS?"}},
		{"read-only replica", fmt.Sprintf("[%q]", replica.addr), []string{replica.addr, "READONLY"}},
		{"up fails", fmt.Sprintf("{servers: [%q], up: 'echo no such chart >&2; exit 3', down: 'touch down1'}", good.addr),
			[]string{"command up", "exit status 3", "no such chart"}},
		{"up hangs", fmt.Sprintf("{servers: [%q], up: 'echo pulling; sleep 1000 & wait', down: 'touch down2', timeout: 1s}", good.addr),
			[]string{"command up", "timeout after 1s", "pulling"}},
		{"servers_from prints nothing", "{servers_from: 'true'}", []string{"command servers_from", "no server"}},
		{"servers_from prints garbage", "{servers_from: 'echo Unable to connect'}", []string{"command servers_from", `"Unable" is not HOST:PORT`}},
		{"ready never", fmt.Sprintf("{servers: [%q], ready: 'echo 1 of 3 pods; false', timeout: 1s}", good.addr),
			[]string{"command ready", "1 of 3 pods"}},
		{"down fails", fmt.Sprintf("{servers: [%q], up: 'true', down: 'echo forbidden; exit 1'}", good.addr), []string{"command down", "forbidden"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := *b
			sub.t = t
			r := sub.run(1, "run", b.write("bad.yaml", onCluster(c.cluster, brief)))
			contains(t, r.stderr.String(), c.want...)
			if strings.Contains(r.stderr.String()+r.stdout.String(), "staple") {
				t.Error("the password was printed")
			}
		})
	}
	for _, file := range []string{"down1", "down2"} {
		if !exists(b.path(file)) {
			t.Errorf("down did not run: no %s", file)
		}
	}
	if after := good.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
	if left, _ := filepath.Glob(b.path("data/clusters/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// httpServer returns the address of a server of another protocol.
func (b *bench) httpServer() string {
	b.t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	b.t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Each trial reads servers_from again, because the addresses of a cluster may change.
func TestServersChangeBetweenTrials(t *testing.T) {
	b := newBench(t)
	first, second := b.startServer(testkit.Address(t)), b.startServer(testkit.Address(t))
	script := fmt.Sprintf("if test -e asked; then echo %s; else touch asked; echo %s; fi", second.addr, first.addr)
	b.run(0, "run", b.write("own.yaml", onCluster("{servers_from: '"+script+"'}", brief, "repetitions: 2")))
	for _, s := range []ownServer{first, second} {
		stats, err := s.client.Info(t.Context(), "commandstats").Result()
		if err != nil || !strings.Contains(stats, "cmdstat_hmset") && !strings.Contains(stats, "cmdstat_hset") {
			t.Errorf("no trial wrote to %s: %v\n%s", s.addr, err, stats)
		}
	}
}

// A cluster disappears during a trial: the run reports it, earlier results are kept, and the next run drops the table
// if the cluster returns.
func TestLostClusterIsReported(t *testing.T) {
	b := newBench(t)
	addr, dir := testkit.Address(t), t.TempDir()
	keep := []string{"--appendonly", "yes", "--appendfsync", "always", "--dir", dir}
	s := b.startServer(addr, keep...)
	s.addForeign()
	before := s.checksum()
	file := b.write("own.yaml", onCluster("[\""+addr+"\"]", "stop: {time: 3s}"))
	r := b.command("run", file).start()
	b.measuring(b.path("runs/latest"))
	s.signal(syscall.SIGKILL)
	s.wait()
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, r.stderr.String())
	}
	contains(t, r.stderr.String(), addr, "drop table skerry_")
	if seconds, err := os.ReadFile(b.path("runs/latest/trials/1/timeline.parquet")); err != nil || len(seconds) == 0 {
		t.Errorf("the seconds before are lost: %v", err)
	}
	s = b.startServer(addr, keep...)
	r = b.run(0, "run", b.write("next.yaml", onCluster("[\""+addr+"\"]", brief)))
	contains(t, r.stderr.String(), "dropped the tables of a killed run: skerry_")
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
}

// Runs killed by kill -9 at random times do not change other keys. The next run drops Skerry's own. SKERRY_KILLS sets
// the number of kills.
func TestKilledRunsKeepForeignKeys(t *testing.T) {
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("SKERRY_KILLS")); err == nil {
		kills = n
	}
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	file := b.write("own.yaml", onCluster("[\""+s.addr+"\"]", "stop: {time: 400ms}", "repetitions: 2"))
	began := time.Now()
	b.run(0, "run", file)
	span := time.Since(began)
	withTable := 0
	for i := range kills {
		after := time.Duration(rand.Int64N(int64(span))) // any moment of a run: not a wait for a condition
		r := b.command("run", file).start()
		time.Sleep(after)
		_ = r.cmd.Process.Kill() // it may have ended
		r.wait()
		if s.hasTable() {
			withTable++
		}
		t.Logf("kill %d after %v: %s", i+1, after.Round(time.Millisecond), s.checksum())
	}
	b.run(0, "run", file)
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
	if left, _ := filepath.Glob(b.path("data/clusters/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	t.Logf("%d of %d kills left keys to the next start", withTable, kills)
}

// hasTable reports whether the server has keys of Skerry.
func (s ownServer) hasTable() bool {
	s.t.Helper()
	keys, err := s.client.Keys(s.t.Context(), "skerry_*:user*").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.ContainsFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "skerry_0123456789abcdef:") })
}
