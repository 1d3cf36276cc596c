package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestParseOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks")
	if err := os.WriteFile(file, []byte("4,5\n9\n12-14,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"17":          "[17]",
		"3,5-8,3":     "[3 5 6 7 8]",
		"@" + file:    "[4 5 9 12 13 14 3]",
		"@FILE:2":     "[9]",
		"@FILE:3":     "[12 13 14 3]",
		"@FILE:4":     "",
		"@FILE:0":     "",
		"@FILE:x":     "",
		"@nowhere:1":  "",
		"":            "",
		"0":           "",
		"-3":          "",
		"8-5":         "",
		"1-999999999": "",
	} {
		if len(text) > 5 && text[:5] == "@FILE" {
			text = "@" + file + text[5:]
		}
		got, err := ParseOnly(text)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v (%v), want %s", text, got, err, want)
		}
	}
}

// Trials that share a cluster within a repetition are one task, others one each.
func TestTasksOfAPlan(t *testing.T) {
	const clusters = "matrix={database: [redis, etcd], workload: [a, c]}"
	count := func(sets ...string) (tasks int) {
		for _, p := range planned(load(t, sets...)) {
			tasks = max(tasks, p.Task)
		}
		return tasks
	}
	if got := count(clusters); got != 8 {
		t.Errorf("%d tasks without reuse, want 8", got)
	}
	if got := count(clusters, "reuse=true"); got != 4 {
		t.Errorf("%d tasks of two clusters in two repetitions, want 4", got)
	}
}
