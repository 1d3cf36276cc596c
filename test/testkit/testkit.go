// Package testkit holds helpers that tests of several packages share: required features of the machine, network
// namespaces, relays, wall clocks, and program builds.
package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"skerry/web"
)

// Feature is a property of the machine that a test needs.
type Feature struct {
	// Name in SKERRY_REQUIRE and in the summary of skipped tests.
	Name string
	// Missing returns the reason why the feature is missing, or "".
	Missing func() string
}

// Ability is a property of the machine that only a failed call reveals.
type Ability string

// Need skips the test if a feature is missing. The reason begins with "needs NAME:". If SKERRY_REQUIRE (a comma-separated
// list that `make test` sets to the installed features) contains the feature, Need fails the test, so that a skip cannot
// hide a regression.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if why := f.Missing(); why != "" {
			skipMissing(t, f.Name, why)
		}
	}
}

// Lacks ends the test like Need does, after a call that failed because an ability is missing.
func Lacks(t testing.TB, a Ability, why error) {
	t.Helper()
	skipMissing(t, string(a), why.Error())
}

// OptIn returns the value of an environment variable that enables a slow or interactive test. If the variable is not set,
// OptIn skips the test with a reason that begins with "asked for by VARIABLE:".
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
		t.Fatalf("needs %s, which SKERRY_REQUIRE lists as installed: %s", name, why)
	}
	t.Skipf("needs %s: %s", name, why)
}

// required returns the features in SKERRY_REQUIRE.
func required() []string {
	return strings.Split(os.Getenv("SKERRY_REQUIRE"), ",")
}

// Condition returns a testscript.Params.Condition that reports whether the machine has a feature by name. A missing
// feature that SKERRY_REQUIRE lists is an error, as in Need.
func Condition(more ...Feature) func(name string) (bool, error) {
	known := append([]Feature{Root, TUN, FUSE, QEMU, Dig, Git}, more...)
	return func(name string) (bool, error) {
		i := slices.IndexFunc(known, func(f Feature) bool { return f.Name == name })
		if i < 0 {
			return false, fmt.Errorf("unknown feature %q", name)
		}
		why := known[i].Missing()
		if why != "" && slices.Contains(required(), name) {
			return false, fmt.Errorf("needs %s, which SKERRY_REQUIRE lists as installed: %s", name, why)
		}
		return why == "", nil
	}
}

// Features that tests need.
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
	// FrontEnd is the output of `make web`. A binary without it has no report and no dashboard.
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
	Python   = Feature{"python3", hasProgram("python3")}
	DpkgDeb  = Feature{"dpkg-deb", hasProgram("dpkg-deb")}
	Make     = Feature{"make", hasProgram("make")}
	Setpriv  = Feature{"setpriv", hasProgram("setpriv")}
	Chromium = Feature{"chromium", hasProgram("chromium")}
	// Jupyter executes notebooks. Tests that need it also need pandas and matplotlib.
	Jupyter = Feature{"jupyter", commandSucceeds("jupyter", "nbconvert", "--version")}
	// Analysis is Python with the packages that read the files of a run directory.
	Analysis = Feature{"pandas-duckdb", commandSucceeds("python3", "-c", "import duckdb, pandas, pyarrow")}
	// R is R with the packages that read the files of a run directory.
	R = Feature{"r-analysis", commandSucceeds("Rscript", "-e", "library(jsonlite); library(nanoparquet)")}
)

// Abilities that tests detect by a failed call.
const (
	UserNamespaces Ability = "user-namespaces"
	Mounts         Ability = "mounts"
	LoopVolumes    Ability = "loop-volume"
	OverlayVolumes Ability = "overlay-volume"
	// Cgroups are CPU and memory control groups of either version, Cgroup2 those of version 2. DiskCgroups limit the disk
	// of the test directory.
	Cgroups     Ability = "cgroups"
	Cgroup2     Ability = "cgroup2"
	DiskCgroups Ability = "disk-cgroups"
	// DirectIO is a file system that supports writes past the page cache.
	DirectIO Ability = "direct-io"
	// SharedMemory is a directory below /dev/shm.
	SharedMemory Ability = "shared-memory"
	// ClassArchives is a Java, version 13 or later, that writes class data archives.
	ClassArchives Ability = "class-archives"
	// Quiet is a machine without load from other processes.
	Quiet Ability = "quiet"
	// Delays is a kernel that reports the time that threads wait for processors (schedstat) and for disks (pressure).
	Delays Ability = "delays"
	// RealTime is a scheduler that gives root real-time priority.
	RealTime Ability = "real-time"
)

// commandSucceeds returns a check that a command exits with status 0.
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

// FindNulls returns the paths of null values in a JSON document. The front end's types, which are generated from Go types,
// do not allow null.
func FindNulls(document []byte) ([]string, error) {
	var v any
	if err := json.NewDecoder(bytes.NewReader(document)).Decode(&v); err != nil {
		return nil, fmt.Errorf("decoding the JSON document: %w", err)
	}
	places := findNulls(v, "")
	slices.Sort(places)
	return places, nil
}

func findNulls(v any, place string) (places []string) {
	switch x := v.(type) {
	case nil:
		return []string{place}
	case []any:
		for i, item := range x {
			places = append(places, findNulls(item, fmt.Sprintf("%s[%d]", place, i))...)
		}
	case map[string]any:
		for name, item := range x {
			places = append(places, findNulls(item, place+"."+name)...)
		}
	}
	return places
}
