package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database/all"
	"skerry/internal/database/redis"
	"skerry/internal/run/choose"
	"skerry/internal/run/draft"
	"skerry/test/testkit"
)

// Choices are listed with their answers, which are isolated from this server; nothing else of the folder is shown.
func TestChoices(t *testing.T) {
	b := maker(t, nil)
	b.server.Choices = t.TempDir()
	dir := filepath.Join(b.server.Choices, "20261124-101500")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("choice.json", `{"schema":"`+choose.StateSchema+`","trials":7,"budget_s":2400,"sentence":"Redis."}`)
	write(choose.PageFile, "<title>Redis</title><script>alert(1)</script>")
	write("secret", "no")
	if err := os.Mkdir(filepath.Join(b.server.Choices, "something else"), 0o755); err != nil {
		t.Fatal(err)
	}
	var list []Choice
	if b.get("/api/choices", &list); len(list) != 1 || list[0].Sentence != "Redis." || list[0].Page != choose.PageFile ||
		list[0].Grid != "" || list[0].Running {
		t.Errorf("%+v", list)
	}
	code, header, page := b.request(http.MethodGet, "/choices/20261124-101500/"+choose.PageFile, "", b.own()...)
	if policy := header.Get("Content-Security-Policy"); code != http.StatusOK || !strings.Contains(page, "Redis") ||
		!strings.Contains(policy, "sandbox") || strings.Contains(policy, "script-src") {
		t.Errorf("%d %q %s", code, policy, page)
	}
	for _, path := range []string{"/choices/20261124-101500/secret", "/choices/20261124-101500/choice.json",
		"/choices/..%2f20261124-101500/" + choose.PageFile, "/choices/none/" + choose.PageFile} {
		if code, _, text := b.request(http.MethodGet, path, "", b.own()...); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// The form's answers become a valid needs file. Mistakes are reported with lines, and needs that cannot be answered
// with the reason.
func TestDraftNeeds(t *testing.T) {
	b := maker(t, nil)
	testkit.Need(t, testkit.Installed(redis.Recipe))
	b.server.Registry = all.Registry()
	s := draft.DefaultNeeds()
	s.Consider = []string{"redis"}
	var c Checked
	if code := b.send(http.MethodPost, "/api/sketch", s, &c); code != http.StatusOK || !strings.Contains(c.Text, "consider: [redis]") {
		t.Fatalf("%d %+v", code, c)
	}
	if !c.Valid || len(c.Candidates) == 0 || c.EstimateS != 2400 || len(c.Places.Sites) != 8 {
		t.Errorf("%+v", c)
	}
	wrong := Text{Text: strings.Replace(c.Text, "budget", "bugdet", 1), Needs: s.Name}
	if b.send(http.MethodPost, "/api/validate", wrong, &c); c.Valid || c.Wrong[0].Line != strings.Count(wrong.Text, "\n") ||
		!strings.Contains(c.Wrong[0].Hint, "budget") {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"../needs", "a b", ""} {
		s.Name = name
		if b.send(http.MethodPost, "/api/sketch", s, &c); c.Valid {
			t.Errorf("a file called %q: %+v", name, c)
		}
	}
}
