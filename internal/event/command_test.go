package event

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/record"
)

// addressed is a host with an address.
type addressed struct {
	host.Host
	addr string
}

func (h addressed) Addr() string { return h.addr }

// commandBench runs real commands in a folder.
type commandBench struct {
	dir, undo string
	end       context.CancelFunc // of the trial
	events    []record.Event     // once done is closed
	once      sync.Once
	active    chan struct{} // closed when an event is complete
	done      chan struct{}
}

func startCommands(t *testing.T, events string) *commandBench {
	t.Helper()
	b := &commandBench{dir: t.TempDir(), active: make(chan struct{}), done: make(chan struct{})}
	b.undo = journal.UndosDir(filepath.Join(t.TempDir(), "data"))
	ctx, cancel := context.WithCancel(t.Context())
	b.end = cancel
	world := &Testbed{Lab: "lab1", CommandDir: b.dir, UndoDir: b.undo, Host: func(name string) (host.Host, error) {
		return addressed{addr: "10.0.0." + map[string]string{"oslo": "1", "bergen": "2", "narvik": "3", "client": "9"}[name]}, nil
	}}
	r, err := NewRunner(Config{Events: read(t, events), Stage: stage(), World: world, Seed: 1,
		Record: func(e record.Event) error {
			if e.State == record.EventActive {
				b.once.Do(func() { close(b.active) })
			}
			return nil
		}, Interrupted: func() bool { return ctx.Err() != nil }})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.done)
		if err := r.Run(ctx, time.Now()); err != nil {
			t.Error(err)
		}
		b.events = r.Events()
	}()
	t.Cleanup(func() { cancel(); <-b.done })
	return b
}

// await waits until a file exists, and returns its content.
func (b *commandBench) await(t *testing.T, name string) string {
	t.Helper()
	for {
		text, err := os.ReadFile(filepath.Join(b.dir, name))
		if err == nil {
			return strings.TrimSpace(string(text))
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s was never created", name)
		}
		time.Sleep(time.Millisecond)
	}
}

// finish ends the trial and returns its only event.
func (b *commandBench) finish(t *testing.T) record.Event {
	t.Helper()
	b.end()
	<-b.done
	if _, err := os.Stat(filepath.Dir(b.undo)); err == nil {
		t.Errorf("%s was left", filepath.Dir(b.undo))
	}
	return b.events[0]
}

func TestCommandIsRunAndUndone(t *testing.T) {
	b := startCommands(t, `- {name: drain, at: 0s, for: 100ms, command: {
  do: 'echo {{.Lab}} {{names .Nodes ","}} {{hostports .Nodes 6379 " "}} {{.Client.Addr}} {{(index .Nodes 1).Site}} | tee did; echo bad >&2',
  until: 'test -e twice || { touch twice; exit 1; }', undo: 'test -e did && echo back && touch undone'}}`)
	want := "lab1 oslo,bergen,narvik 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379 10.0.0.9 bergen"
	b.await(t, "undone") // do has ended, so that its file is complete
	if got := b.await(t, "did"); got != want {
		t.Errorf("do wrote %q, want %q", got, want)
	}
	e := b.finish(t)
	if e.State != record.EventReverted || e.Error != "" || e.Name != "drain" {
		t.Errorf("event %+v", e)
	}
	if a := e.Apply; a.Accepted == nil || a.Completed == nil || a.Completed.NS-a.Accepted.NS < int64(200*time.Millisecond) {
		t.Errorf("accepted %v, completed %v, want one repetition of until between them", a.Accepted, a.Completed)
	}
	if len(e.Apply.Commands) != 2 || len(e.Revert.Commands) != 1 {
		t.Fatalf("commands %+v, %+v", e.Apply.Commands, e.Revert.Commands)
	}
	if c := e.Apply.Commands[0]; c.Name != "do" || !strings.HasPrefix(c.Text, "echo lab1 oslo") || c.Exit != 0 ||
		c.Output != want+"\nbad" && c.Output != "bad\n"+want { // the order of two streams is unknown
		t.Errorf("recorded %+v", c)
	}
	if c := e.Revert.Commands[0]; c.Name != "undo" || c.Output != "back" {
		t.Errorf("recorded %+v", c)
	}
}

// A command that fails is a failed event, with its last lines, and is undone.
func TestFailingCommandIsUndone(t *testing.T) {
	for name, tt := range map[string]struct{ command, errs string }{
		"do":          {`{do: 'echo no such node; exit 7', undo: touch undone}`, "command do: exit status 7: no such node"},
		"do hangs":    {`{do: 'echo waiting; sleep 600', undo: touch undone, timeout: 300ms}`, "command do: timeout after 300ms: waiting"},
		"until":       {`{do: 'true', until: 'echo not yet; false', undo: touch undone, timeout: 300ms}`, "not yet"},
		"until waits": {`{do: 'true', until: 'echo not yet; sleep 600', undo: touch undone, timeout: 300ms}`, "command until: timeout after"},
		"undo": {`{do: 'exit 1', undo: 'touch undone; test -e tried || { touch tried; echo locked; exit 5; }'}`,
			"command undo: exit status 5: locked"},
		"undo, hangs": {`{do: 'exit 1', undo: 'touch undone; test -e tried || { touch tried; sleep 600; }', timeout: 300ms}`,
			"command undo: timeout after 300ms"},
		"not a command": {`{do: no-such-program-here, undo: touch undone}`, "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			b := startCommands(t, `- {at: 0s, command: `+tt.command+`}`)
			b.await(t, "undone")
			b.end()
			<-b.done
			if e := b.events[0]; e.State != record.EventFailed || !strings.Contains(e.Error, tt.errs) {
				t.Errorf("state %s, error %q, want %q", e.State, e.Error, tt.errs)
			}
			// A failed undo is repeated at the next start.
			undone, err := journal.SweepUndos(t.Context(), b.undo)
			if left := strings.HasPrefix(name, "undo"); err != nil || (len(undone) == 1) != left {
				t.Errorf("undone at the next start: %q, %v", undone, err)
			}
			if _, err := os.Stat(filepath.Dir(b.undo)); err == nil {
				t.Errorf("%s was left", filepath.Dir(b.undo))
			}
		})
	}
}

// The end of the trial, at any moment, kills a command that runs and undoes the event.
func TestEndOfTrialUndoesCommand(t *testing.T) {
	for name, tt := range map[string]struct{ command, state string }{
		"during do":    {`{do: 'touch began; sleep 600', undo: touch undone}`, record.EventFailed},
		"during until": {`{do: 'true', until: 'touch began; sleep 600', undo: touch undone}`, record.EventFailed},
		"after do":     {`{do: 'touch began', undo: touch undone}`, record.EventReverted},
	} {
		t.Run(name, func(t *testing.T) {
			b := startCommands(t, `- {at: 0s, command: `+tt.command+`}`)
			b.await(t, "began")
			if tt.state == record.EventReverted {
				<-b.active
			}
			if e := b.finish(t); e.State != tt.state {
				t.Errorf("state %s (%s), want %s", e.State, e.Error, tt.state)
			}
			b.await(t, "undone")
		})
	}
}

// Programs that a command leaves in the background end with the event.
func TestBackgroundProgramEnds(t *testing.T) {
	b := startCommands(t, `- {at: 0s, command: {do: 'setsid sleep 600 >/dev/null 2>&1 & echo $! >new; mv new pid'}}`)
	pid := b.await(t, "pid")
	<-b.active
	if e := b.finish(t); e.State != record.EventReverted {
		t.Errorf("state %s (%s)", e.State, e.Error)
	}
	for { // a process that was killed has no command line
		if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err != nil || len(text) == 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the background program is still running")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCommandsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{at: 1s, command: {do: "echo {{.Adr}}"}}`:                    "there is no .Adr",
		`{at: 1s, command: {do: "x", undo: "echo {{addrs .Nodes}}"}}`: `addrs is written as {{addrs .Members ","}}`,
		`{at: 1s, command: {do: " "}}`:                                "command: do is empty",
		`{at: 1s, command: {do: x, timeout: 0s}}`:                     "timeout must be positive",
		`{at: 1s, for: 5s, command: x}`:                               "command cannot be reverted",
		`{at: 1s, for: 5s, command: {do: x, undo: y}}`:                "",
		`{at: 1s, command: './fail.sh {{names .Nodes " "}}'}`:         "",
	} {
		got := ""
		Check(read(t, "- "+text), stage(), 0, func(_, _, format string, args ...any) { got += fmt.Sprintf(format, args...) })
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
