package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
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

	"skerry/internal/database"
	"skerry/internal/database/redis"
	"skerry/internal/evidence/race"
	"skerry/internal/record"
	"skerry/internal/run/choose"
	"skerry/test/testkit"
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
	return b.startRedis(in, addr, args...)
}

func (b *bench) startRedis(in database.Installation, addr string, args ...string) ownServer {
	b.t.Helper()
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
	version := b.installedVersion()
	d, err := record.Open(b.path("runs/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if all := slices.Collect(maps.Values(d.Run.Versions.Databases)); len(all) != 1 || all[0] != version || sum.Trials[0].Machine.Database != version {
		t.Errorf("the record has versions %v, and the trial %q, want %s", all, sum.Trials[0].Machine.Database, version)
	}
	if after := s.checksum(); after != before {
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
	}
	for _, args := range [][]string{{"report"}, {"compare", "runs/latest", "runs/latest"}} {
		b.run(0, args...)
	}
}

// installedVersion is the version of Redis that tests start.
func (b *bench) installedVersion() string {
	b.t.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.t.Fatal(err)
	}
	return in.Version
}

// Servers of different versions, and the versions of several trials, are all in the record.
func TestVersionsOfServers(t *testing.T) {
	testkit.Need(t, testkit.Installed(redis.Recipes[1]))
	b := newBench(t)
	old, err := redis.New().Find(redis.Recipes[1].Series, "")
	if err != nil {
		t.Fatal(err)
	}
	first, second := b.startServer(testkit.Address(t)), b.startRedis(old, testkit.Address(t))
	script := fmt.Sprintf("if test -e asked; then echo %s; else touch asked; echo %s; fi", second.addr, first.addr)
	file := b.write("own.yaml", onCluster("{servers_from: '"+script+"'}", brief, "repetitions: 2"))
	b.run(0, "run", file)
	versions := func() string {
		t.Helper()
		d, err := record.Open(b.path("runs/latest"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Collect(maps.Values(d.Run.Versions.Databases)), " and ")
	}
	if got, want := versions(), b.installedVersion()+"; "+old.Version; got != want {
		t.Errorf("the record has version %q, want %q", got, want)
	}
	b.run(0, "run", b.write("both.yaml", onCluster(fmt.Sprintf("[%q, %q]", first.addr, second.addr), brief)))
	want := fmt.Sprintf("%s (%s), %s (%s)", old.Version, second.addr, b.installedVersion(), first.addr)
	if notes := strings.Join(b.summary(b.path("runs/latest")).Trials[0].Verdict.Notes, "\n"); versions() != want || !strings.Contains(notes, want) {
		t.Errorf("the record has version %q and notes %q, want %q", versions(), notes, want)
	}
}

// A choice between one's own cluster and a database in a lab: the cluster's bad day and its costs are not measured, and
// said so. Its command runs in the folder of the needs file.
func TestOwnClusterInChoice(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	b.write("servers", s.addr)
	const own = "load: {workload: a, target: 100, records: 200, threads: 4}\nmust: [p99 < 5s, availability > 50%]\nmeasure: 1s\nlasts: 1s\n" +
		"repetitions: 1\nbudget: 80s\nseed: 1\n"
	const cluster = "{name: mine, database: {name: redis, cluster: {servers_from: cat servers}}}"
	alone := b.write("alone.yaml", own+"prefer: [p99]\nconsider: ["+cluster+"]\n")
	r := b.run(0, "choose", alone, "--plan")
	contains(t, r.stdout.String(), "mine (redis) at servers that cat servers prints", "runs here: servers_from: cat servers", "up to 200 records")
	r = b.command("choose", alone).start()
	switch code := r.wait(); {
	case code == 0:
		contains(t, r.stdout.String(), "Use mine (redis): p99 ")
	case code == 1 && strings.Contains(r.stdout.String(), "no usable trial on the quiet day: "): // other tests used the CPUs
		t.Log(r.stdout.String())
	default:
		t.Errorf("exit %d\n%s\n%s", code, r.stdout.String(), r.stderr.String())
	}
	both := b.write("both.yaml", own+"cloud: {sites: [a, b, c], defaults: {rtt: 1ms}}\nclient: a\nbad_days: [killed: any]\n"+
		"prefer: [p99, cost.memory]\nconsider: ["+cluster+", redis]\n")
	r = b.command("choose", both, "--json", "--out", b.path("both")).start()
	r.wait() // whether a trial is valid depends on other tests
	var a choose.Answer
	if err := json.Unmarshal([]byte(r.stdout.String()), &a); err != nil {
		t.Fatal(err, r.stderr.String())
	}
	const never = "bad days were not tried: Skerry cannot break this cluster"
	i := slices.IndexFunc(a.Candidates, func(v choose.Verdict) bool { return v.Own == "mine" })
	if i < 0 || len(a.Candidates) < 2 {
		t.Fatalf("the candidates are %+v", a.Candidates)
	}
	t.Log(a.Sentence)
	switch v := a.Candidates[i]; v.Out {
	case race.Partly:
		if v.Version != b.installedVersion() {
			t.Errorf("its version is %s", v.Version)
		}
		contains(t, a.Sentence, "mine (redis) had p99 ", never)
	case race.Void, race.Worse:
		t.Log(v.Why)
	default:
		t.Errorf("the cluster is %q: %s", v.Out, v.Why)
	}
	for _, n := range a.Candidates[i].Needs {
		if n.Day != race.Quiet && (n.State != choose.NotMeasured || n.Why != never) {
			t.Errorf("%+v, want %s", n, choose.NotMeasured)
		}
	}
	pages, err := filepath.Glob(b.path("both/*/answer.html"))
	if err != nil || len(pages) != 1 {
		t.Fatal(pages, err)
	}
	page, err := os.ReadFile(pages[0])
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(page), never, "cost.memory is not measured")
	if after := s.checksum(); after != before {
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
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
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
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
		{"a silent server", fmt.Sprintf("{servers: [%q], properties: {redis.timeout: 500}}", silent), []string{silent}},
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
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
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
		t.Errorf("the seconds before the failure are lost: %v", err)
	}
	s = b.startServer(addr, keep...)
	r = b.run(0, "run", b.write("next.yaml", onCluster("[\""+addr+"\"]", brief)))
	contains(t, r.stderr.String(), "dropped the tables of a killed run: skerry_")
	if after := s.checksum(); after != before {
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
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
		after := time.Duration(rand.Int64N(int64(span))) // any time in a run: not a wait for a condition
		r := b.command("run", file).start()
		time.Sleep(after)
		_ = r.cmd.Process.Kill() // the process may have ended
		r.wait()
		if s.hasTable() {
			withTable++
		}
		t.Logf("kill %d after %v: %s", i+1, after.Round(time.Millisecond), s.checksum())
	}
	b.run(0, "run", file)
	if after := s.checksum(); after != before {
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
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

// A file describes the user's own client, and the cluster is Redis or servers that only the file's program knows.
func TestOwnDatabaseOnOwnServers(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	b.write("mydb.yaml", "name: my-redis\nclient: {protocol: redis, properties: {redis.timeout: \"5000\"}}\n")
	file := b.write("own.yaml", strings.Replace(onCluster("[\""+s.addr+"\"]", brief, "audit: true"), "name: redis", "exec: mydb.yaml", 1))
	b.run(0, "run", file)
	trial := b.summary(b.path("runs/latest")).Trials[0]
	if trial.State != record.TrialOK || trial.Audit == nil || trial.Audit.Lost > 0 || trial.Goodput <= 0 ||
		trial.Machine.Database != b.installedVersion() {
		t.Errorf("%s %s, audit %+v, version %q", trial.State, trial.Error, trial.Audit, trial.Machine.Database)
	}
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
	r := b.run(2, "run", b.write("lab.yaml", "name: lab\ntopology: pair\ndatabase: {exec: mydb.yaml}\nworkload: a\n"))
	if !strings.Contains(r.stderr.String(), "mydb.yaml:1:1: server is missing") {
		t.Errorf("a lab: %s", r.stderr.String())
	}
}

// The program of examples/own is the client of a server that the test starts.
func TestOwnProgramOnOwnServers(t *testing.T) {
	testkit.Need(t, testkit.Python)
	b := newBench(t)
	example, err := filepath.Abs("../../examples/own")
	if err != nil {
		t.Fatal(err)
	}
	addr := testkit.Address(t)
	host, port, _ := strings.Cut(addr, ":")
	server := exec.Command("python3", filepath.Join(example, "kv.py"), "serve", host, port, filepath.Join(t.TempDir(), "rows.log"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() }) // it may have ended
	count := func() string {
		out, _ := exec.Command("python3", filepath.Join(example, "kv.py"), "count", addr).Output()
		return strings.TrimSpace(string(out))
	}
	b.await("the server", func() bool { return count() == "0" })
	file := b.write("own.yaml", strings.Replace(onCluster("[\""+addr+"\"]", brief, "audit: true", "matrix: {workload: [a, e]}"), "name: redis",
		"exec: "+filepath.Join(example, "kv.yaml"), 1))
	want := "runs on this machine: " + filepath.Join(example, "kv.yaml") + ", client.program: ./kv.py client"
	if r := b.run(0, "validate", file); !strings.Contains(r.stdout.String(), want) {
		t.Errorf("the plan does not list the client's program: %s", r.stdout.String())
	}
	b.run(0, "run", file)
	for _, trial := range b.summary(b.path("runs/latest")).Trials {
		if trial.State != record.TrialOK || trial.Audit == nil || trial.Audit.Lost > 0 || trial.Goodput <= 0 || trial.Outcomes.Failed > 0 {
			t.Errorf("trial %d: %s %s, audit %+v", trial.ID, trial.State, trial.Error, trial.Audit)
		}
	}
	if n := count(); n != "0" {
		t.Errorf("%s records are left", n)
	}
}

// With --on and a machines file, the clients run on another machine: all trials on one, because they share the cluster. Its
// SSH is a script that runs the command here.
func TestClientsOnAnotherMachine(t *testing.T) {
	b := newBench(t)
	s := b.startServer(testkit.Address(t))
	s.addForeign()
	before := s.checksum()
	if err := os.Mkdir(b.path("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.write("bin/ssh", "#!/bin/sh\nfor command; do :; done\nexec sh -c \"$command\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	machines := b.write("machines.yaml", "machines:\n  - {name: near, ssh: lab@near.example}\n  - {name: other, ssh: lab@other.example}\n")
	on := func(want int, file string) *running {
		r := b.command("run", file, "--on", machines)
		r.cmd.Env = append(r.cmd.Environ(), "PATH="+b.path("bin")+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+b.path("cache"))
		if got := r.start().wait(); got != want {
			t.Fatalf("exit %d, want %d\n%s", got, want, r.stderr.String())
		}
		return r
	}
	on(0, b.write("own.yaml", onCluster("[\""+s.addr+"\"]", brief, "matrix: {workload: [a, b]}", "audit: true")))
	for i, trial := range b.summary(b.path("runs/latest")).Trials {
		if trial.State != record.TrialOK || trial.Audit == nil || trial.Audit.Lost > 0 || trial.Goodput <= 0 {
			t.Errorf("trial %d: %s %s, audit %+v", trial.ID, trial.State, trial.Error, trial.Audit)
		}
		if task := b.plan(b.path("runs/latest"))[i].Task; task != 1 {
			t.Errorf("trial %d is of task %d: trials on one cluster would disturb each other", trial.ID, task)
		}
	}
	if after := s.checksum(); after != before {
		t.Errorf("the server has %s, and had %s", after, before)
	}
	// Commands of the cluster belong to this machine.
	r := on(1, b.write("up.yaml", onCluster("{servers_from: list}", brief)))
	if !strings.Contains(r.stderr.String(), "commands of a cluster run on the machine that runs skerry (servers_from: list)") {
		t.Errorf("%s", r.stderr.String())
	}
}
