package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/kernel/procfs"
	"skerry/internal/lab"
	"skerry/test/testkit"
)

// The unprivileged Unix user.
const nobody = 65534

// unprivileged is a folder where an unprivileged user may run skerry.
type unprivileged struct{ dir, exe string }

func newUnprivileged(t *testing.T) unprivileged {
	t.Helper()
	self, err := exec.LookPath("skerry") // the copy made by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	u := unprivileged{dir: t.TempDir()}
	u.exe = filepath.Join(u.dir, "skerry")
	program, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(u.exe, program, 0o755)
	}
	for _, name := range []string{"run", "cache"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(u.dir, name), 0o755))
		if os.Geteuid() == 0 {
			err = errors.Join(err, os.Chown(filepath.Join(u.dir, name), nobody, nobody))
		}
	}
	// The test's directory belongs to the user only below its first level.
	for dir := u.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		err = errors.Join(err, os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// command is a command line of that user.
func (u unprivileged) command(line ...string) *exec.Cmd {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = u.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "GORACE=atexit_sleep_ms=0",
		"XDG_RUNTIME_DIR=" + filepath.Join(u.dir, "run"), "XDG_CACHE_HOME=" + filepath.Join(u.dir, "cache"),
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

// skerry runs skerry and returns its standard output and standard error.
func (u unprivileged) skerry(t *testing.T, want int, args ...string) string {
	t.Helper()
	out, err := u.command(append([]string{u.exe}, args...)...).CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Errorf("skerry %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out)
	}
	return string(out)
}

func needUserNamespaces(t *testing.T) unprivileged {
	t.Helper()
	u := newUnprivileged(t)
	if out, err := u.command("unshare", "--user", "--map-root-user", "--net", "--mount", "true").CombinedOutput(); err != nil {
		testkit.Lacks(t, testkit.UserNamespaces, fmt.Errorf("%w: %s", err, out))
	}
	return u
}

// A connection between two nodes; perl is part of every Debian.
const (
	serverText = `$s = IO::Socket::INET->new(LocalPort => 7777, Listen => 1) or die $!; $c = $s->accept; print $c "hello"`
	clientText = `for (1 .. 600) { last if $c = IO::Socket::INET->new("n1:7777"); select undef, undef, undef, .05 } print <$c>`
)

func TestLabWithoutRoot(t *testing.T) {
	u := needUserNamespaces(t)
	steps := []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"lab", "up", "pair"}, "CPU and memory of nodes are not limited"},
		{0, []string{"lab", "status"}, "10.77.0.2"},
		{0, []string{"lab", "up", "pair", "--name", "other"}, "other is up: 2 nodes, 1 links"},
		{7, []string{"lab", "exec", "--lab", "pair", "n2", "--", "sh", "-c", "exit 7"}, ""},
		{0, []string{"lab", "exec", "--lab", "pair", "n2", "--", "sh", "-c", "id -u; hostname; pwd; getent hosts n1"},
			"0\nn2\n" + u.dir + "\n10.77.0.1"},
		{0, []string{"lab", "set", "--lab", "pair", "n1~n2", "rtt=1ms"}, ""},
		{0, []string{"lab", "links", "pair"}, "500us"},
		{1, []string{"lab", "down"}, "give one of the names other, pair"},
	}
	for _, s := range steps {
		if out := u.skerry(t, s.code, s.args...); !strings.Contains(out, s.want) {
			t.Errorf("skerry %v: want %q in\n%s", s.args, s.want, out)
		}
	}
	listen := u.command(u.exe, "lab", "exec", "--lab", "pair", "n1", "--", "perl", "-MIO::Socket::INET", "-e", serverText)
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	if out := u.skerry(t, 0, "lab", "exec", "--lab", "pair", "n2", "--", "perl", "-MIO::Socket::INET", "-e", clientText); out != "hello" {
		t.Errorf("n2 got %q from n1", out)
	}
	if err := listen.Wait(); err != nil {
		t.Errorf("on n1: %v", err)
	}
	u.skerry(t, 0, "lab", "down", "--all")
	u.empty(t)
}

// A rootless lab does not outlive the process that keeps its namespace, and its leftovers are removed from outside.
func TestHolderKilled(t *testing.T) {
	u := needUserNamespaces(t)
	u.skerry(t, 0, "lab", "up", "pair")
	var labs []lab.Info
	if err := json.Unmarshal([]byte(u.skerry(t, 0, "lab", "status", "--json")), &labs); err != nil || len(labs) != 1 {
		t.Fatalf("%d labs, %v", len(labs), err)
	}
	if err := labs[0].Holder.Kill(); err != nil {
		t.Fatal(err)
	}
	for labs[0].Holder.Alive() {
	}
	if out := u.skerry(t, 0, "lab", "status"); !strings.Contains(out, "dead") {
		t.Errorf("status without the holder:\n%s", out)
	}
	if out := u.skerry(t, 0, "lab", "up", "pair"); !strings.Contains(out, "removed the remains of a killed command: pair") {
		t.Errorf("the next command:\n%s", out)
	}
	u.skerry(t, 0, "lab", "down")
	u.empty(t)
}

// empty fails the test if anything of a lab remains.
func (u unprivileged) empty(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(u.dir, "*/skerry*/*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	pids, err := procfs.ListPIDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err == nil && exe == u.exe {
			t.Errorf("process %d is still running", pid)
		}
	}
}
