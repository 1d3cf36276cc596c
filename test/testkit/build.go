package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/install"
)

// BuildPrograms builds programs of this module into dir. It uses the flags of `make build`, so that compiled packages are
// reused.
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

// Installed returns the feature of a recipe's database or program, in the cache of `skerry install` or in PATH. For a
// database with several versions it is the default version.
func Installed(r install.Recipe) Feature {
	return Feature{r.Name, func() string {
		if why := SkipReason(r, r.Name); why != "" {
			return why
		}
		dir, err := install.DefaultDir()
		if err != nil {
			return err.Error()
		}
		_, _, err = install.Store{Dir: dir}.Current(r.Key())
		switch {
		case err == nil:
			return ""
		case len(r.Programs) == 0:
			return err.Error()
		}
		return hasProgram(r.Programs[0])()
	}}
}

// SkipReason returns the reason to skip the tests of name, or "". With SKERRY_REQUIRE set, only its features and the
// databases of the default suite are tested. Otherwise everything installed is tested.
func SkipReason(r install.Recipe, name string) string {
	if os.Getenv("SKERRY_REQUIRE") == "" || r.Wanted == install.ByTests || slices.Contains(required(), name) {
		return ""
	}
	return "not requested; make slow tests more databases, make conformance all"
}
