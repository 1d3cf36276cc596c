package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"skerry/internal/record"
)

func TestNextCommandCleansUpKilledRun(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("one.yaml", one), "--set", "stop.time=8s").start()
	b.await("the driver", func() bool { return len(b.find("agent load")) > 0 })
	r.signal(syscall.SIGKILL)
	r.wait()
	if len(b.find("redis-server")) == 0 {
		t.Fatal("the cluster ended with skerry, so there is nothing to remove")
	}
	cleared := b.run(0, "lab", "sweep")
	contains(t, cleared.stdout.String()+cleared.stderr.String(), "removed the remains")
	for _, l := range append(b.leftovers(), leftoversOf(r.cmd.Process.Pid)...) {
		t.Errorf("left behind: %s", l)
	}
	b.run(0, "run", "--resume", "runs/latest")
}

func TestDatabaseKilledMidTrial(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("small.yaml", small), "--set", "matrix.workload=[a]", "--set", "stop.time=8s").start()
	b.measuring(b.path("runs/latest"))
	b.kill("redis-server")
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, r.stderr.String())
	}
	contains(t, r.stderr.String(), "redis", "killed")
	s := b.summary(b.path("runs/latest"))
	states := map[string]int{}
	for _, x := range s.Trials {
		states[x.State]++
	}
	if states[record.TrialFailed] != 1 || states[record.TrialOK] != 1 {
		t.Errorf("states %v, want one failed and one ok", states)
	}
}

func TestEmulatorKilledMidTrial(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("one.yaml", one)).start()
	b.measuring(b.path("runs/latest"))
	b.kill("agent link")
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, r.stderr.String())
	}
	contains(t, r.stderr.String(), "emulator")
}

func TestDriverKilledMidTrial(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("one.yaml", one)).start()
	b.measuring(b.path("runs/latest"))
	b.kill("agent load")
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1\n%s", code, r.stderr.String())
	}
	contains(t, r.stderr.String(), "load driver")
}

func TestFullDisk(t *testing.T) {
	b := newBench(t)
	out := b.path("tiny")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", out, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the check for leftovers, which looks for mounts
		if err := syscall.Unmount(out, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(out, "ballast"), make([]byte, 1000<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	r := b.run(1, "run", b.write("small.yaml", small), "--out", out)
	contains(t, r.stderr.String(), "disk is full")
}

func TestMistakesAreReportedBeforeStart(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		name, file string
		parts      []string
	}{
		{"unknown key", "name: x\ntopologie: azure8\n", []string{"bad.yaml:2:1", "topology"}},
		{"unknown preset", "name: x\ntopology: azur8\ndatabase: redis\nworkload: a\n", []string{"bad.yaml:2", "azure8"}},
		{"negative latency", "name: x\ntopology: {sites: [a, b], defaults: {rtt: -3ms}}\ndatabase: redis\nworkload: a\n", []string{"bad.yaml:2", "-3ms"}},
		{"unknown database", "name: x\ntopology: azure8\ndatabase: rediss\nworkload: a\n", []string{"bad.yaml:3", "redis"}},
		{"no workload file", "name: x\ntopology: azure8\ndatabase: redis\nworkload: {file: nowhere}\n", []string{"bad.yaml:4", "nowhere"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.run(2, "run", b.write("bad.yaml", tt.file))
			contains(t, r.stderr.String(), tt.parts...)
			if exists(b.path("runs")) {
				t.Error("a run directory was created")
			}
		})
	}
}

func TestMissingDatabaseErrorHasInstallAdvice(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("one.yaml", one))
	r.cmd.Env = append(r.cmd.Env, "PATH=/nowhere", "SKERRY_CACHE="+b.path("cache"))
	if code := r.start().wait(); code == 0 {
		t.Error("exit 0")
	}
	contains(t, r.stderr.String(), "redis", "skerry install redis")
}

// A command of an event is undone at the event's end. If skerry was killed, the next command undoes it.
func TestCommandEventsAreUndone(t *testing.T) {
	const drain = "events: [{name: drain, at: 1s, command: {do: 'echo {{names .Nodes \" \"}} >drained; sleep 600 >/dev/null 2>&1 & true', " +
		"undo: 'rm drained && touch undone'}}]\n"
	b := newBench(t)
	file := b.write("one.yaml", one+drain)
	contains(t, b.run(0, "validate", file).stdout.String(), "runs on this machine: event drain, do: echo", "event drain, undo: rm drained")
	b.run(0, "run", file, "--set", "stop.time=4s")
	if err := os.Remove(b.path("undone")); err != nil {
		t.Error(err)
	}
	r := b.command("run", file, "--set", "stop.time=60s").start()
	b.await("the command", func() bool { _, err := os.Stat(b.path("drained")); return err == nil })
	r.signal(syscall.SIGKILL)
	r.wait()
	cleared := b.run(0, "lab", "sweep")
	contains(t, cleared.stderr.String(), "undid a command of a killed run: echo")
	if _, err := os.Stat(b.path("undone")); err != nil {
		t.Error(err)
	}
	for _, l := range append(b.leftovers(), leftoversOf(r.cmd.Process.Pid)...) {
		t.Errorf("left behind: %s", l)
	}
}
