package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRowsOfOtherDatabasesAreKept(t *testing.T) {
	const head = "| database | version | scan | load |\n|---|---|---|---|\n"
	for name, tt := range map[string]struct{ old, table, want string }{
		"a new row":         {head + "| a | 1 | yes | yes |\n", head + "| b | 1 | - | yes |\n", head + "| a | 1 | yes | yes |\n| b | 1 | - | yes |\n"},
		"a new cell":        {head + "| a | 1 | yes | yes |\n", head + "| a | 1 | not reached | **no** |\n", head + "| a | 1 | yes | **no** |\n"},
		"a new version":     {head + "| a | 1 | yes | yes |\n", head + "| a | 2 | not reached | - |\n", head + "| a | 2 | not reached | - |\n"},
		"no old table":      {"\n", head + "| b | 1 | - | yes |\n", head + "| b | 1 | - | yes |\n"},
		"different columns": {"| database | load |\n|---|---|\n| a | yes |\n", head + "| b | 1 | - | yes |\n", head + "| b | 1 | - | yes |\n"},
	} {
		if got := mergeTables("\n"+tt.old+"\n", tt.table); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestMatrix(t *testing.T) {
	dir := t.TempDir()
	if _, err := readRows(dir); !errors.Is(err, errNoRows) {
		t.Errorf("no rows: error %v", err)
	}
	for name, text := range map[string]string{
		"b.json": `{"database":"redis","variant":"replicas","version":"7.0.15","aspects":{"scan":"pass","churn":"fail","kill":"no"},
			"churn":{"steps":[{},{}],"rows":90,"lost":2,"stale":1},"accounts":{"halt":{"rows":5}}}`,
		"a.json": `{"database":"etcd","version":"3.4.23","aspects":{"scan":"pass"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := readRows(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(formatTable(rows), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[2], "| etcd | 3.4.23 |") {
		t.Fatalf("table %q", lines)
	}
	for _, want := range []string{"| redis, replicas | 7.0.15 |", "**no**: 2 changes, 90 rows, 3 lost", "not reached: 5 rows, 0 lost", " - |"} {
		if !strings.Contains(lines[3], want) {
			t.Errorf("row %q lacks %q", lines[3], want)
		}
	}

	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("a\n"+begin+"old\n"+end+"b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := insertTable(page, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != "a\n"+begin+"\nnew\n\n"+end+"b\n" {
		t.Errorf("page %q, %v", text, err)
	}
	if err := os.WriteFile(page, []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := insertTable(page, "new\n"); !errors.Is(err, errNoMarks) {
		t.Errorf("a page without markers: error %v", err)
	}
}
