package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
)

// script writes an executable file that prints text.
func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "companion")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompanionIsFound(t *testing.T) {
	c := Companion{Name: "companion", Variable: "SKERRY_TEST_COMPANION"}
	if _, err := c.Find(); !errors.Is(err, ErrNoCompanion) || !strings.Contains(advice.Of(err), c.Variable) {
		t.Errorf("without a program: %v, %q", err, advice.Of(err))
	}
	inPath := script(t, t.TempDir(), `{"version": "1"}`)
	t.Setenv("PATH", filepath.Dir(inPath))
	if got, err := c.Find(); got != inPath || err != nil {
		t.Errorf("found in PATH: %s, %v", got, err)
	}
	named := script(t, t.TempDir(), `{"version": "2"}`)
	t.Setenv(c.Variable, named)
	if in, err := c.Install("db", ""); err != nil || in.Version != "2" || in.Programs[c.Name] != named {
		t.Errorf("named by the variable: %+v, %v", in, err)
	}
	if in, err := c.Install("db", inPath); err != nil || in.Version != "1" || in.Programs[c.Name] != inPath || in.Source != FromPath {
		t.Errorf("given by --from: %+v, %v", in, err)
	}
	t.Setenv(c.Variable, "/nosuch")
	if _, err := c.Find(); !errors.Is(err, ErrNoCompanion) {
		t.Errorf("the variable names a missing file: %v", err)
	}
	if _, err := c.Install("db", script(t, t.TempDir(), "usage")); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("the variable names another program: %v", err)
	}
}
