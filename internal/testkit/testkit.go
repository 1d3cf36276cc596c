// Package testkit is what tests of several packages share: the features a test
// needs from its machine, and scratch resources that clean up after themselves.
package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"skerry/web"
)

// Feature is something a machine may lack and a test may need.
type Feature struct {
	// Name is how SKERRY_REQUIRE and the summary of skipped tests call it.
	Name string
	// Missing says why the machine lacks it, "" when it has it.
	Missing func() string
}

// Ability is something of the kernel or the machine that only the call tells which fails for
// lack of it.
type Ability string

// Need skips the test when the machine lacks a feature, with a reason that begins
// with "needs NAME:". A feature listed in SKERRY_REQUIRE (comma separated, as `make test`
// sets it where the feature was installed) fails the test in place of skipping it, so
// that a skip cannot hide rot.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if why := f.Missing(); why != "" {
			skipMissing(t, f.Name, why)
		}
	}
}

// Lacks ends the test as Need does, after a call that failed for lack of an ability.
func Lacks(t testing.TB, a Ability, why error) {
	t.Helper()
	skipMissing(t, string(a), why.Error())
}

// OptIn is the value of an environment variable without which a test does not run, since it
// takes minutes or makes something to look at. Where the variable is not set it skips the
// test, with a reason that begins with "asked for by VARIABLE:" and says what for.
func OptIn(t testing.TB, variable, what string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Skipf("asked for by %s: %s", variable, what)
	}
	return value
}

func skipMissing(t testing.TB, name, why string) {
	t.Helper()
	if slices.Contains(required(), name) {
		t.Fatalf("needs %s, which SKERRY_REQUIRE says is here: %s", name, why)
	}
	t.Skipf("needs %s: %s", name, why)
}

// required is what SKERRY_REQUIRE lists.
func required() []string {
	return strings.Split(os.Getenv("SKERRY_REQUIRE"), ",")
}

// Condition answers scripts (testscript.Params.Condition) whether the machine has the
// feature of a name, one of this package's or of more, by the rule of Need: one that
// SKERRY_REQUIRE lists must be there.
func Condition(more ...Feature) func(name string) (bool, error) {
	known := append([]Feature{Root, TUN, FUSE, QEMU, Dig, Git}, more...)
	return func(name string) (bool, error) {
		i := slices.IndexFunc(known, func(f Feature) bool { return f.Name == name })
		if i < 0 {
			return false, fmt.Errorf("unknown feature %q", name)
		}
		why := known[i].Missing()
		if why != "" && slices.Contains(required(), name) {
			return false, fmt.Errorf("needs %s, which SKERRY_REQUIRE says is here: %s", name, why)
		}
		return why == "", nil
	}
}

// Features that tests ask for.
var (
	Root = Feature{"root", func() string {
		if os.Geteuid() != 0 {
			return "not running as root"
		}
		return ""
	}}
	TUN = Feature{"tun", func() string {
		f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
		if err != nil {
			return err.Error()
		}
		f.Close()
		return ""
	}}
	FUSE = Feature{"fuse", func() string {
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			return err.Error()
		}
		f.Close()
		return ""
	}}
	// FrontEnd is what make web builds: without it a binary has no report and no dashboard.
	FrontEnd = Feature{"front-end", func() string {
		if _, err := web.ReportPage(); err != nil {
			return err.Error()
		}
		return ""
	}}
	QEMU     = Feature{"qemu", hasProgram("qemu-system-x86_64")}
	Dig      = Feature{"dig", hasProgram("dig")}
	Ping     = Feature{"ping", hasProgram("ping")}
	Git      = Feature{"git", hasProgram("git")}
	DpkgDeb  = Feature{"dpkg-deb", hasProgram("dpkg-deb")}
	Make     = Feature{"make", hasProgram("make")}
	Setpriv  = Feature{"setpriv", hasProgram("setpriv")}
	Chromium = Feature{"chromium", hasProgram("chromium")}
	// Jupyter executes notebooks. It comes with pandas and matplotlib where a test needs it.
	Jupyter = Feature{"jupyter", commandSucceeds("jupyter", "nbconvert", "--version")}
	// Analysis are the Python packages that read a run directory's files.
	Analysis = Feature{"pandas-duckdb", commandSucceeds("python3", "-c", "import duckdb, pandas, pyarrow")}
	// R is R with the packages that read them.
	R = Feature{"r-analysis", commandSucceeds("Rscript", "-e", "library(jsonlite); library(nanoparquet)")}
)

// Abilities that tests find out about.
const (
	UserNamespaces Ability = "user-namespaces"
	Mounts         Ability = "mounts"
	LoopVolumes    Ability = "loop-volume"
	OverlayVolumes Ability = "overlay-volume"
	// Cgroups are control groups of CPU and memory of either version, Cgroup2 those of
	// version 2, DiskCgroups those that bound the disk of the tests' directory.
	Cgroups     Ability = "cgroups"
	Cgroup2     Ability = "cgroup2"
	DiskCgroups Ability = "disk-cgroups"
	// DirectIO is a file system that is written to past the page cache.
	DirectIO Ability = "direct-io"
	// SharedMemory is a directory below /dev/shm.
	SharedMemory Ability = "shared-memory"
	// ClassArchives is a Java, from 13 on, that writes archives of its classes.
	ClassArchives Ability = "class-archives"
	// Quiet is a machine that leaves a measurement undisturbed for once.
	Quiet Ability = "quiet"
	// Delays is a kernel that counts what threads wait for: processors (schedstat), and disks (pressure).
	Delays Ability = "delays"
	// RealTime is a scheduler that gives root real-time priority.
	RealTime Ability = "real-time"
)

// commandSucceeds is a feature that is there when a command ends well.
func commandSucceeds(name string, args ...string) func() string {
	return func() string {
		if why := hasProgram(name)(); why != "" {
			return why
		}
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			return name + ": " + string(out)
		}
		return ""
	}
}

func hasProgram(name string) func() string {
	return func() string {
		if _, err := exec.LookPath(name); err != nil {
			return err.Error()
		}
		return ""
	}
}
