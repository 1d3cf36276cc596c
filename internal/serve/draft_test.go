package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/run/draft"
	"skerry/internal/run/live"
)

// maker is a bench whose pages can save and start experiments.
func maker(t *testing.T, launch Launch) *bench {
	t.Helper()
	b := newBench(t, "")
	b.server.Databases, b.server.Experiments, b.server.Launch, b.server.Log = all.Databases(), t.TempDir(), launch,
		slog.New(slog.DiscardHandler)
	t.Cleanup(b.server.jobs.close)
	return b
}

// send sends JSON like a page of the server.
func (b *bench) send(method, path string, body any, into any) int {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	code, _, answer := b.request(method, path, string(text), b.own()...)
	if into != nil {
		if err := json.Unmarshal([]byte(answer), into); err != nil {
			b.t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	return code
}

func TestDraftExperimentIsValid(t *testing.T) {
	b := maker(t, nil)
	var f Form
	b.get("/api/form", &f)
	if f.Starts || len(f.Databases) < 10 || f.Draft.Name == "" {
		t.Errorf("the form: %+v", f)
	}
	var c Checked
	if code := b.send(http.MethodPost, "/api/draft", f.Draft, &c); code != http.StatusOK || !c.Valid || c.Trials != 1 ||
		c.Places == nil || len(c.Places.Sites) != 8 {
		t.Fatalf("%d %+v", code, c)
	}
	var wrong Checked
	b.send(http.MethodPost, "/api/validate", Text{Text: c.Text + "scael: 2\n"}, &wrong)
	if wrong.Valid || len(wrong.Wrong) != 1 || wrong.Wrong[0].Line != strings.Count(c.Text, "\n")+1 ||
		!strings.Contains(wrong.Wrong[0].Hint, "scale") {
		t.Errorf("a misspelt key: %+v", wrong)
	}
	if code := b.send(http.MethodPut, "/api/experiment", Text{Text: wrong.Text}, nil); code != http.StatusBadRequest {
		t.Errorf("an invalid experiment was saved: %d", code)
	}
	var s Saved
	if code := b.send(http.MethodPut, "/api/experiment", Text{Text: c.Text}, &s); code != http.StatusOK ||
		filepath.Dir(s.File) != b.server.Experiments {
		t.Fatalf("%d %+v", code, s)
	}
	if v := experiment.Validate(s.File, nil, false, all.Databases()); !v.Valid {
		t.Error(v.Err())
	}
	if code := b.send(http.MethodPost, "/api/job", Text{Text: c.Text}, nil); code != http.StatusConflict {
		t.Errorf("a server without Launch started a run: %d", code)
	}
	d := draft.DefaultExperiment()
	d.Events = []draft.Event{{Offer: "isolate"}}
	if b.send(http.MethodPost, "/api/draft", d, &c); c.Valid || !strings.Contains(c.Wrong[0].Message, "needs a node") {
		t.Errorf("an event without a target: %+v", c)
	}
}

// The server updates its own file with the page; a file with other changes stays.
func TestSaveKeepsForeignFiles(t *testing.T) {
	b := maker(t, nil)
	text, err := draft.DefaultExperiment().YAML()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.server.Experiments, "my-question.yaml")
	put := func(text string) int { return b.send(http.MethodPut, "/api/experiment", Text{Text: text}, nil) }
	if put(text) != http.StatusOK || put(text+"# again\n") != http.StatusOK {
		t.Error("the server's own file was not replaced")
	}
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := put(text); code != http.StatusConflict {
		t.Errorf("%d", code)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
}

// One run at a time is started, only for pages of this server; it ends with the server.
func TestStarting(t *testing.T) {
	began, ended := make(chan string), make(chan struct{})
	b := maker(t, func(ctx context.Context, file string, _ bool, _ io.Writer) error {
		began <- file
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	text, err := draft.DefaultExperiment().YAML()
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(Text{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/job", "/api/draft", "/api/validate"} {
		if code, _, _ := b.request(http.MethodPost, path, string(body), "Origin: "+b.http.URL); code != http.StatusForbidden {
			t.Errorf("POST %s without the header of a page: %d", path, code)
		}
	}
	if code, _, _ := b.request(http.MethodDelete, "/api/job", "", "Origin: http://evil.example"); code != http.StatusForbidden {
		t.Errorf("another site stopped a run: %d", code)
	}
	if code := b.send(http.MethodPost, "/api/job", Text{Text: text}, nil); code != http.StatusAccepted {
		t.Fatalf("%d", code)
	}
	if file := <-began; filepath.Base(file) != "my-question.yaml" {
		t.Error(file)
	}
	if code := b.send(http.MethodPost, "/api/job", Text{Text: text}, nil); code != http.StatusConflict {
		t.Errorf("a second run: %d", code)
	}
	b.server.jobs.close()
	<-ended
	var j Job
	if b.get("/api/job", &j); j.Runs || j.Error != "" {
		t.Errorf("%+v", j)
	}
}

func TestFailedJobIsReported(t *testing.T) {
	b := maker(t, func(_ context.Context, _ string, _ bool, said io.Writer) error {
		_, _ = io.WriteString(said, "no Redis here\n")
		return errors.New("exit status 1")
	})
	text, err := draft.DefaultExperiment().YAML()
	if err != nil {
		t.Fatal(err)
	}
	if code := b.send(http.MethodPost, "/api/job", Text{Text: text}, nil); code != http.StatusAccepted {
		t.Fatalf("%d", code)
	}
	b.server.jobs.done.Wait()
	var j Job
	if b.get("/api/job", &j); j.Runs || j.Error != "exit status 1" || j.Said != "no Redis here" {
		t.Errorf("%+v", j)
	}
}

// Commands run only for pages of this machine, unless the server allows them.
func TestCommandsNeedLoopback(t *testing.T) {
	began := make(chan string, 1)
	b := maker(t, func(_ context.Context, file string, _ bool, _ io.Writer) error { began <- file; return nil })
	const text = "name: mine\ndatabase: {name: redis, cluster: {servers_from: ./servers.sh, up: ./up.sh}}\nworkload: a\n"
	var refused live.Refusal
	code := b.send(http.MethodPost, "/api/job", Text{Text: text}, &refused)
	if code != http.StatusForbidden || !strings.Contains(refused.Error, "./up.sh") || !strings.Contains(refused.Hint, "--allow-commands") {
		t.Errorf("%d %+v", code, refused)
	}
	if files, err := os.ReadDir(b.server.Experiments); err != nil || len(files) > 0 {
		t.Errorf("a refused experiment was saved: %v, %v", files, err)
	}
	b.server.AllowCommands = true
	if code := b.send(http.MethodPost, "/api/job", Text{Text: text}, nil); code != http.StatusAccepted {
		t.Errorf("%d", code)
	}
	if file := <-began; filepath.Base(file) != "mine.yaml" {
		t.Error(file)
	}
}

// TestCommandEventsNeedLoopback: the plan lists the commands of events, and neither a run nor a fired event runs them.
func TestCommandEventsNeedLoopback(t *testing.T) {
	b := maker(t, func(context.Context, string, bool, io.Writer) error { return nil })
	text, err := draft.DefaultExperiment().YAML()
	if err != nil {
		t.Fatal(err)
	}
	quiet := text
	text += "events: [{name: drain, at: 1s, command: {do: ./drain.sh, undo: ./undrain.sh}}]\n"
	var c Checked
	if b.send(http.MethodPost, "/api/validate", Text{Text: text}, &c); !c.Valid ||
		!slices.Contains(c.Notes, "runs on this machine: event drain, do: ./drain.sh") ||
		!slices.Contains(c.Notes, "runs on this machine: event drain, undo: ./undrain.sh") {
		t.Errorf("the plan lists no commands: %+v", c)
	}
	var refused live.Refusal
	code := b.send(http.MethodPost, "/api/job", Text{Text: text}, &refused)
	if code != http.StatusForbidden || !strings.Contains(refused.Error, "./drain.sh") || !strings.Contains(refused.Hint, "--allow-commands") {
		t.Errorf("%d %+v", code, refused)
	}
	// A machine that a command reaches, and settings of ssh that can be commands.
	for machine, want := range map[string]string{
		"command: [./reach.sh, m1]":                        "machine m1, command: ./reach.sh m1",
		"ssh: {host: m1, options: [ProxyCommand=./nc.sh]}": "-o ProxyCommand=./nc.sh",
	} {
		inline := quiet + "machines: [{name: m1, " + machine + "}]\n"
		code := b.send(http.MethodPost, "/api/job", Text{Text: inline}, &refused)
		if code != http.StatusForbidden || !strings.Contains(refused.Error, want) {
			t.Errorf("%s: %d %+v", machine, code, refused)
		}
	}
	code = b.send(http.MethodPost, "/api/runs/x/events", map[string]any{"command": "./drain.sh"}, &refused)
	if code != http.StatusForbidden || !strings.Contains(refused.Error, "do: ./drain.sh") {
		t.Errorf("a command was fired: %d %+v", code, refused)
	}
}

// TestSecretsNeedLoopback: a page of another machine could send a password of this one to a server of its own.
func TestSecretsNeedLoopback(t *testing.T) {
	t.Setenv("SKERRY_TEST_PASSWORD", "correct horse")
	b := maker(t, func(context.Context, string, bool, io.Writer) error { return nil })
	const text = "name: mine\ndatabase: {name: redis, cluster: {servers: ['10.0.0.1:6379'], password: {env: SKERRY_TEST_PASSWORD}}}\nworkload: a\n"
	var refused live.Refusal
	code := b.send(http.MethodPost, "/api/job", Text{Text: text}, &refused)
	if code != http.StatusForbidden || !strings.Contains(refused.Error, "password from $SKERRY_TEST_PASSWORD") {
		t.Errorf("%d %+v", code, refused)
	}
	b.server.AllowCommands = true
	if code := b.send(http.MethodPost, "/api/job", Text{Text: text}, nil); code != http.StatusAccepted {
		t.Errorf("%d", code)
	}
}
