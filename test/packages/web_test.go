package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/test/testkit"
)

// Without npm the build stops with advice, unless a front end was built before.
func TestWebWithoutNPM(t *testing.T) {
	testkit.Need(t, testkit.Make)
	program, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := filepath.Abs(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	web := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "-s", "-C", dir, "-f", makefile, "web")
		cmd.Env = []string{"PATH=" + filepath.Join(dir, "empty")}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const line = "web: npm not found: install Node.js 18 or newer with npm"
	for _, built := range []string{"", "report/report.html.gz"} {
		writeEmpty(t, dir, built)
		if out, err := web(); err == nil || strings.Count(out, line) != 1 {
			t.Errorf("with %q built: %v, want %q once in\n%s", built, err, line, out)
		}
	}
	writeEmpty(t, dir, "dashboard/dashboard.html.gz")
	if out, err := web(); err != nil || strings.Contains(out, line) {
		t.Errorf("with a front end: %v\n%s", err, out)
	}
}

// writeEmpty creates an empty file of the built front end, or none if name is "".
func writeEmpty(t *testing.T, dir, name string) {
	t.Helper()
	if name == "" {
		return
	}
	path := filepath.Join(dir, "web", "dist", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
