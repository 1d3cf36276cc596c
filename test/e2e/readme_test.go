package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/database/redis"
	"skerry/internal/experiment"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// listed is the README's list "Some commands need no experiment file".
var listed = regexp.MustCompile("(?s)Some commands need no experiment file:\n\n```\n(.*?)```")

// Every command of the README's list runs as printed, in order. A command that runs until Ctrl-C is interrupted when it
// works.
func TestReadmeCommands(t *testing.T) {
	b := newBench(t)
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	list := listed.FindStringSubmatch(string(text))
	if list == nil {
		t.Fatal("the list is missing in the README")
	}
	inside := testkit.Namespace(t) // for commands that listen at fixed addresses
	untilCtrlC := map[string]func(b *bench, command string){
		"skerry play": (*bench).playOn,
		"skerry lab exec": func(b *bench, command string) {
			testkit.Need(b.t, testkit.Ping)
			r := b.shell(command).start()
			answer := regexp.MustCompile(`time=([0-9.]+) ms`)
			b.await("an answer to ping", func() bool { return answer.MatchString(r.stdout.String()) })
			// A packet is never early, however busy the machine is.
			if ms, _ := strconv.ParseFloat(answer.FindStringSubmatch(r.stdout.String())[1], 64); ms < 80 {
				b.t.Errorf("the round trip takes %v ms, want the README's 81", ms)
			}
			b.interrupt(r)
		},
		"hydra dev": func(b *bench, command string) {
			r := b.shell(within(inside, command)).start()
			b.await("the deployment", func() bool { return strings.Contains(r.stdout.String(), "The wallet is at") })
			b.interrupt(r)
		},
		"metad serve": func(b *bench, command string) {
			r := b.shell(within(inside, command)).start()
			b.await("the server", func() bool { return strings.Contains(r.stdout.String(), "serving tree on http://127.0.0.1:8080/") })
			b.interrupt(r)
		},
	}
	ends := map[string]func(b *bench, command string) string{ // returns the command to run
		"skerry lab up": itself, "skerry lab set": itself, "skerry lab down": itself, "skerry doctor": itself,
		"skerry ycsb run": func(b *bench, command string) string {
			server, err := redis.New().Find("", "")
			if err != nil {
				b.t.Fatal(err)
			}
			r := b.shell(within(inside, server.Programs["redis-server"]+" --save '' --dir "+b.dir))
			r.cmd.Env = append(r.cmd.Env, server.Env...)
			r.start()
			b.await("Redis", func() bool { return strings.Contains(r.stdout.String(), "Ready to accept connections") })
			return within(inside, command)
		},
	}
	for line := range strings.Lines(list[1]) {
		command, _, _ := strings.Cut(line, "  #")
		command = strings.TrimSpace(command)
		words := strings.Fields(command)
		name := strings.Join(words[:min(2, len(words))], " ")
		if len(words) > 2 && (words[1] == "lab" || words[1] == "ycsb") {
			name = strings.Join(words[:3], " ")
		}
		t.Run(name, func(t *testing.T) {
			on := *b
			on.t = t
			if run, ok := untilCtrlC[name]; ok {
				run(&on, command)
				return
			}
			prepare, ok := ends[name]
			if !ok {
				t.Fatalf("the test cannot run %q: add a case", command)
			}
			if r := on.shell(prepare(&on, command)).start(); r.wait() != 0 {
				t.Errorf("%s: exit %d\n%s%s", command, r.cmd.ProcessState.ExitCode(), r.stdout.String(), r.stderr.String())
			}
		})
	}
}

func itself(_ *bench, command string) string { return command }

// within runs a command in a new network namespace.
func within(n *testkit.NS, command string) string {
	return "nsenter --net=" + n.Path() + " " + command
}

// shell runs a shell with the bench's skerry on its path.
func (b *bench) shell(command string) *running {
	r := b.command()
	r.cmd.Path, r.cmd.Args = "/bin/sh", []string{"sh", "-c", "exec " + command} // the shell would replace its exit code
	bin := b.path("bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{"skerry", "hydra", "metad"} {
		if err := os.Symlink(filepath.Join(filepath.Dir(b.exe), name), filepath.Join(bin, name)); err != nil && !os.IsExist(err) {
			b.t.Fatal(err)
		}
	}
	r.cmd.Env = append(r.cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	return r
}

// interrupt is Ctrl-C in a terminal, which reaches every process of the command and must end it successfully.
func (b *bench) interrupt(r *running) {
	b.t.Helper()
	if err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT); err != nil {
		b.t.Fatal(err)
	}
	if code := r.wait(); code != 0 {
		b.t.Errorf("%v: exit %d after Ctrl-C\n%s%s", r.cmd.Args, code, r.stdout.String(), r.stderr.String())
	}
}

// playOn runs skerry play until it measures: neither a time nor a number of operations ends it.
func (b *bench) playOn(command string) {
	r := b.shell(command)
	r.cmd.Env = append(r.cmd.Env, "TMPDIR="+b.temp())
	r.start()
	dir := b.played()
	b.measuring(dir)
	checkEndless(b.t, dir)
	b.interrupt(r)
	contains(b.t, r.stderr.String(), "lab and results removed")
}

// temp is an empty directory for temporary files.
func (b *bench) temp() string {
	b.t.Helper()
	temp := b.path("tmp")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		b.t.Fatal(err)
	}
	return temp
}

// played waits for the run directory of skerry play.
func (b *bench) played() (dir string) {
	b.t.Helper()
	b.await("the run", func() bool {
		dirs, _ := filepath.Glob(b.path("tmp/skerry-play-*/latest"))
		if len(dirs) > 0 {
			dir = dirs[0]
		}
		return dir != ""
	})
	return dir
}

// checkEndless fails the test if a limit would end the run that is recorded in dir.
func checkEndless(t *testing.T, dir string) {
	t.Helper()
	d, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Parse("play.yaml", d.Run.Experiment, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if s := e.Stop; s.Time != 0 || s.Operations != experiment.Endless || s.Confidence != 0 || s.AfterEvents != nil {
		t.Errorf("the trial ends: %s", s)
	}
}
