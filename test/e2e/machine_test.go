package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"skerry/internal/run/live"
)

// process is a process with this bench's state: skerry, its agents, the databases.
type process struct {
	pid  int
	args string
}

// processes lists the processes with the bench's state in their environment, or with a lab's tag.
func (b *bench) processes() []process {
	var out []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		args, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err != nil || len(args) == 0 {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join(d, "cwd"))
		env, _ := os.ReadFile(filepath.Join(d, "environ"))
		if !bytes.Contains(env, []byte(b.dir)) && !strings.HasPrefix(cwd, b.dir) && !bytes.Contains(args, []byte(b.dir)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(d))
		out = append(out, process{pid, string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))})
	}
	return out
}

// find returns the IDs of the processes whose command line contains part.
func (b *bench) find(part string) []int {
	var pids []int
	for _, p := range b.processes() {
		if strings.Contains(p.args, part) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// kill sends SIGKILL to the only process whose command line contains part, if it exists. Processes that end by
// themselves meanwhile, such as a driver after loading, do not count.
func (b *bench) kill(part string) {
	b.t.Helper()
	b.await(part+" to run", func() bool {
		pids := b.find(part)
		return len(pids) > 0 && syscall.Kill(pids[0], syscall.SIGKILL) == nil
	})
}

// measuring waits until a run reports a measuring trial with completed operations.
func (b *bench) measuring(dir string) {
	b.t.Helper()
	b.await("a measurement", func() bool {
		s, err := live.ReadState(b.t.Context(), dir)
		return err == nil && s.Trial != nil && s.Trial.Measuring && s.Totals.OK > 0
	})
}

// leftovers lists the remains of the bench's labs.
func (b *bench) leftovers() []string {
	var out []string
	for _, p := range b.processes() {
		out = append(out, "process "+strconv.Itoa(p.pid)+" "+p.args)
	}
	if labs, err := os.ReadDir(b.path("state")); err == nil {
		for _, l := range labs {
			if l.IsDir() {
				inside, _ := os.ReadDir(filepath.Join(b.path("state"), l.Name()))
				for _, x := range inside {
					out = append(out, "state "+l.Name()+"/"+x.Name())
				}
			}
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil && bytes.Contains(mounts, []byte(b.dir)) {
		out = append(out, "a mount below "+b.dir)
	}
	if nodes, err := filepath.Glob(b.path("data") + "/*/*"); err == nil {
		out = append(out, nodes...)
	}
	return out
}

// Namespaces and control groups have the names of labs, which contain the process ID of the run.
func leftoversOf(pid int) []string {
	var out []string
	mark := "run-" + strconv.Itoa(pid) + "-"
	for _, pattern := range []string{"/run/netns/*", "/sys/fs/cgroup/*/skerry*/*", "/sys/fs/cgroup/skerry*/*", "/etc/netns/*"} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if strings.Contains(f, mark) {
				out = append(out, f)
			}
		}
	}
	return out
}

// checkClean fails the test if anything remains on the machine. A failed test may not have reached its own lab down.
func (b *bench) checkClean() {
	b.t.Helper()
	if b.t.Failed() {
		b.command("lab", "down", "--all").run()
	}
	for _, l := range b.leftovers() {
		b.t.Errorf("left behind: %s", l)
	}
}
