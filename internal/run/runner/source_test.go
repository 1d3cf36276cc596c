package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skerry/internal/record"
)

func TestParseTrials(t *testing.T) {
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
		got, err := ParseTrials(text)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v (%v), want %s", text, got, err, want)
		}
	}
}

// Trials that share a cluster within a repetition are one task, and others as the experiment spreads them.
func TestTasksOfAPlan(t *testing.T) {
	const clusters = "matrix={database: [redis, etcd], workload: [a, c]}"
	for _, tt := range []struct {
		sets []string
		want string // trials of each task
	}{
		{nil, "[[1] [2] [3] [4] [5] [6] [7] [8]]"},
		{[]string{"spread=repetition"}, "[[1 2 3 4] [5 6 7 8]]"},
		{[]string{"spread=cell"}, "[[1 5] [2 6] [3 7] [4 8]]"},
		{[]string{"reuse=true"}, "[[1 2] [3 4] [5 6] [7 8]]"},
		{[]string{"reuse=true", "spread=repetition"}, "[[1 2 3 4] [5 6 7 8]]"},
		{[]string{"reuse=true", "spread=cell"}, "[[1 2 5 6] [3 4 7 8]]"},
	} {
		var got [][]int
		for _, task := range record.Tasks(planTrials(loadExperiment(t, append(tt.sets, clusters)...))) {
			ids := task.IDs()
			slices.Sort(ids)
			got = append(got, ids)
		}
		slices.SortFunc(got, func(a, b []int) int { return a[0] - b[0] })
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%v: %v, want %s", tt.sets, got, tt.want)
		}
	}
}

// Trials of one run are measured by one version of skerry; the sum of the program is on record.
func TestCheckProgram(t *testing.T) {
	r := &run{Config: Config{Version: "1.1"}}
	if err := r.checkProgram(record.Versions{Skerry: "1.0"}); err == nil || err.Error() != "the run uses skerry 1.0, this is 1.1" {
		t.Errorf("%v", err)
	}
	if err := r.checkProgram(record.Versions{Skerry: "1.1", Program: "another build"}); err != nil || r.machine.Program == "" {
		t.Errorf("%v, the sum is %q", err, r.machine.Program)
	}
}
