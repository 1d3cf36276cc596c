// Package engines runs trials on real engines, on simulated machines: complete except for the kernel, which they share,
// and removed when the test ends.
package engines

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

// patience bounds every wait for a condition.
const patience = 4 * time.Minute

// program builds the programs once for all tests, and returns the path of skerry.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "skerry-engines-")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "skerry"), testkit.BuildPrograms(dir, "skerry", "hydra", "metad")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// machine is a simulated machine.
type machine struct {
	name  string
	group string // control group
	init  int
	end   func()
}

// room connects simulated machines: a switch, and a shared folder.
type room struct {
	t        *testing.T
	share    string
	group    string
	exchange int // process in the network namespace of the switch
	machines map[string]*machine
	setting  string // first commands of a shell on h1
}

func newRoom(t *testing.T) *room {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN, fetched, testkit.Installed(redis.Recipe))
	if _, err := os.Stat("/sys/fs/cgroup/cpuset/cgroup.procs"); err != nil {
		testkit.Lacks(t, "cgroup1", err) // simulated machines consist of control groups
	}
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	r := &room{t: t, share: t.TempDir(), group: "skerry-test-" + strconv.Itoa(os.Getpid()), machines: map[string]*machine{}, setting: ":"}
	for _, name := range []string{"skerry", "hydra", "metad"} {
		binary, err := os.ReadFile(filepath.Join(filepath.Dir(exe), name))
		if err != nil {
			t.Fatal(err)
		}
		r.write(name, string(binary))
	}
	r.exchange, _ = r.begin(exec.Command("unshare", "-n", "sleep", "infinity"))
	r.await("the switch", func() bool { // until then it is in this machine's own network
		ours, err := os.Readlink("/proc/self/ns/net")
		its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", r.exchange))
		return err == nil && err2 == nil && ours != its
	})
	r.must(r.onSwitch("ip", "link", "add", "br0", "type", "bridge"))
	r.must(r.onSwitch("ip", "link", "set", "br0", "up"))
	t.Cleanup(func() {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + r.group)
		for _, g := range groups {
			removeGroup(g)
		}
	})
	return r
}

// removeGroup removes a control group and its children after the end of their processes.
func removeGroup(dir string) {
	entries, _ := os.ReadDir(dir) // empty if the group has been removed
	for _, e := range entries {
		if e.IsDir() {
			removeGroup(filepath.Join(dir, e.Name()))
		}
	}
	for range 100 {
		if os.Remove(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// begin starts a process that ends with the test, even if the test is killed.
func (r *room) begin(cmd *exec.Cmd) (pid int, end func()) {
	r.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	started, ended := make(chan error), make(chan struct{})
	hold := make(chan struct{})
	go func() { // the end of the starting thread counts as the parent's end
		defer close(ended)
		lockThread()
		started <- cmd.Start()
		<-hold
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		r.t.Fatal(err)
	}
	end = sync.OnceFunc(func() { close(hold); <-ended })
	r.t.Cleanup(func() {
		end()
		if r.t.Failed() && said.Len() > 0 {
			r.t.Logf("output of %v:\n%s", cmd.Args, said.String())
		}
	})
	return cmd.Process.Pid, end
}

// machine starts the n-th machine, hN with 10.99.0.N.
func (r *room) machine(n int, image string) *machine {
	r.t.Helper()
	m := &machine{name: fmt.Sprintf("h%d", n), group: r.group}
	pid, end := r.begin(exec.Command("./machine.sh", m.name, r.group, image, r.share))
	m.end = end
	r.await(m.name+" to come up", func() bool {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return false
		}
		m.init, err = strconv.Atoi(strings.TrimSpace(string(children)))
		if err != nil {
			return false
		}
		_, err = os.Stat(fmt.Sprintf("/proc/%d/root/run/up", m.init))
		return err == nil
	})
	port := "p" + strconv.Itoa(n)
	r.must(r.onSwitch("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.init)))
	r.must(r.onSwitch("ip", "link", "set", port, "master", "br0", "up"))
	r.must(m.command("ip", "addr", "add", fmt.Sprintf("10.99.0.%d/24", n), "dev", "eth0"))
	r.must(m.command("ip", "link", "set", "eth0", "up"))
	r.must(m.command("bash", "-c", `for n in 1 2 3; do echo 10.99.0.$n h$n; done >/etc/hosts; echo 127.0.0.1 localhost >>/etc/hosts; : >/etc/resolv.conf`))
	r.machines[m.name] = m
	return m
}

func (r *room) onSwitch(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(r.exchange), "-n"}, args...)...)
}

// command runs a command in the machine's namespaces and control groups, except the CPU group, in which the kernel
// grants no real-time priority.
func (m *machine) command(args ...string) *exec.Cmd {
	script := fmt.Sprintf(`for c in /sys/fs/cgroup/*/%s/%s; do case $c in /sys/fs/cgroup/cpu/*) ;; *) echo $$ >$c/cgroup.procs;; esac; done
exec nsenter -t %d -m -u -i -n -p -C -r -w "$@"`, m.group, m.name, m.init)
	return exec.Command("bash", append([]string{"-c", script, "enter"}, args...)...)
}

func (r *room) path(name string) string { return filepath.Join(r.share, name) }

func (r *room) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// run is a subtest.
func (r *room) run(name string, test func(t *testing.T)) {
	was := r.t
	was.Run(name, func(t *testing.T) {
		r.t = t
		defer func() { r.t = was }()
		test(t)
	})
}

// shell runs a line on h1, in the shared folder.
func (r *room) shell(line string) *exec.Cmd {
	return r.machines["h1"].command("bash", "-c", "cd \"$0\" && "+r.setting+" && "+line, r.share)
}

// skerry runs skerry there, and returns its output and error.
func (r *room) skerry(line string) (string, error) {
	out, err := r.shell("./skerry " + line).CombinedOutput()
	r.t.Logf("skerry %s\n%s", line, out)
	return string(out), err
}

func (r *room) sh(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

func (r *room) must(cmd *exec.Cmd) {
	r.t.Helper()
	if err := r.sh(cmd); err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) await(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			r.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
