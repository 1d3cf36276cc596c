package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database/redis"
	"skerry/internal/record"
	"skerry/systems/consensus/ca"
	"skerry/test/testkit"
)

// redisPassword is the variable with the password of the server in these tests.
const redisPassword = "SKERRY_TEST_REDIS_PASSWORD"

// startSecured starts a server that requires TLS and a password, and returns the password. The certificates are below tls.
func (b *bench) startSecured() (s ownServer, password string) {
	b.t.Helper()
	in, err := redis.New().Find("", "")
	if err != nil {
		b.t.Fatal(err)
	}
	addr := testkit.Address(b.t)
	host, port, _ := net.SplitHostPort(addr)
	password = rand.Text()
	a, err := ca.Init(b.path("tls"), "test", 1, time.Now())
	if err == nil {
		err = a.Issue(ca.Subject{Name: "server", Hosts: []string{host}}, 1, time.Now())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	authorities, err := os.ReadFile(b.path("tls/ca.crt"))
	if err != nil {
		b.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	cmd := exec.Command(in.Programs["redis-server"], "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("bind %s\nport 0\ntls-port %s\nsave ''\ndir %s\nrequirepass %s\ntls-auth-clients no\n"+
		"tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n",
		host, port, b.t.TempDir(), password, b.path("tls/server.crt"), b.path("tls/server.key"), b.path("tls/ca.crt")))
	cmd.Env = append(cmd.Environ(), in.Env...)
	s = ownServer{&running{t: b.t, exe: b.exe, cmd: cmd, done: make(chan struct{})}, addr,
		goredis.NewClient(&goredis.Options{Addr: addr, Password: password, TLSConfig: &tls.Config{RootCAs: pool}})}
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	s.start()
	b.t.Cleanup(func() { s.client.Close() })
	b.await("Redis at "+addr, func() bool { return strings.Contains(s.stdout.String(), "Ready to accept connections") })
	return s, password
}

// with adds a variable to the environment of a command.
func (r *running) with(name, value string) *running {
	r.cmd.Env = append(r.cmd.Env, name+"="+value)
	return r
}

// TestSecretsAreNotRecorded: a random password is in no file, output or command line of runs that use it, also of a killed
// one, whose table the next start with the password drops.
func TestSecretsAreNotRecorded(t *testing.T) {
	testkit.Need(t, testkit.FrontEnd)
	b := newBench(t)
	s, password := b.startSecured()
	s.addForeign()
	before := s.checksum()
	cluster := fmt.Sprintf("{servers: [%q], user: default, password: {env: %s}, tls: {ca: tls/ca.crt}}", s.addr, redisPassword)
	long := b.write("long.yaml", onCluster(cluster, "stop: {time: 60s}", "audit: true"))
	short := b.write("short.yaml", onCluster(cluster, "stop: {time: 1s}", "audit: true"))
	var printed strings.Builder
	run := func(r *running, want int) *running {
		t.Helper()
		if code := r.start().wait(); code != want {
			t.Fatalf("skerry %v: exit %d, want %d\n%s", r.cmd.Args[1:], code, want, r.stderr.String())
		}
		printed.WriteString(r.stdout.String() + r.stderr.String())
		return r
	}

	validated := run(b.command("validate", short).with(redisPassword, password), 0)
	contains(t, validated.stdout.String(), "user default, password from $"+redisPassword+", TLS with tls/ca.crt")
	refused := run(b.command("run", short), 2)
	contains(t, refused.stderr.String(), "short.yaml:2:", "variable "+redisPassword+" is not set")

	killed := b.command("run", long).with(redisPassword, password).start()
	b.measuring(b.path("runs/latest"))
	if lines := commandLines(t); len(lines) == 0 || bytes.Contains(lines, []byte(password)) {
		t.Errorf("command lines contain the password, or none was found: %s", lines)
	}
	killed.signal(syscall.SIGKILL)
	killed.wait()
	printed.WriteString(killed.stdout.String() + killed.stderr.String())
	if !s.hasTable() {
		t.Error("the killed run left no table")
	}
	checkFiles(t, b.dir, password)

	other := b.startServer(testkit.Address(t))
	plain := run(b.command("run", b.write("other.yaml", onCluster(fmt.Sprintf("[%q]", other.addr), brief))), 0)
	contains(t, plain.stderr.String(), "drop table skerry_", s.addr, "variable "+redisPassword+" is not set", "the next run drops the table", b.path("data/clusters"))
	swept := run(b.command("run", short).with(redisPassword, password), 0)
	contains(t, swept.stderr.String(), "dropped the tables of a killed run: skerry_")
	if trial := b.summary(b.path("runs/latest")).Trials[0]; trial.State != record.TrialOK || trial.Outcomes.Failed > 0 {
		t.Errorf("trial: %s %s, %+v", trial.State, trial.Error, trial.Outcomes)
	}
	run(b.command("report"), 0)
	run(b.command("show", "--json"), 0)
	checkFiles(t, b.dir, password)
	if strings.Contains(printed.String(), password) {
		t.Errorf("the password was printed:\n%s", printed.String())
	}
	if after := s.checksum(); after != before {
		t.Errorf("the contents of the server changed: %s, were %s", after, before)
	}
	if left, _ := filepath.Glob(b.path("data/clusters/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// commandLines returns the command lines of all processes named skerry.
func commandLines(t *testing.T) (all []byte) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte("skerry")) { // it may have ended
			all = append(append(all, line...), '\n')
		}
	}
	return all
}

// checkFiles fails if any file below dir contains the secret.
func checkFiles(t *testing.T, dir, secret string) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s contains the password", path)
		}
		return nil
	})
	if err != nil || count == 0 {
		t.Errorf("%d files: %v", count, err)
	}
}
