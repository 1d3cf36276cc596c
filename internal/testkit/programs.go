package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BuildPrograms builds programs of this module into dir, with the flags of `make build`, so that compiled packages
// are reused.
func BuildPrograms(dir string, names ...string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", dir + string(filepath.Separator)}
	for _, name := range names {
		args = append(args, "skerry/cmd/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(names, ", "), err, out)
	}
	return nil
}

// MainWithPrograms is the body of a TestMain: it builds programs, puts their folder first in PATH, runs the tests and
// returns the exit code.
func MainWithPrograms(m *testing.M, names ...string) int {
	dir, err := os.MkdirTemp("", "skerry-programs-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = BuildPrograms(dir, names...)
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
