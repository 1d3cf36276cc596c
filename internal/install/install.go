// Package install puts databases onto this machine without changing it: Debian's
// packages are fetched through apt and jars from Maven Central, checked, and unpacked
// into a cache folder of the user's own. Nothing needs root, no service is started, and
// removing the folder undoes everything.
//
//	<cache>/                     $SKERRY_CACHE, else the user's cache folder
//	  downloads/redis/           what was fetched and not unpacked yet
//	  build/mysql-ndb/           what is being compiled
//	  apt/sid/                   apt's lists of another suite than the system's own
//	  redis/
//	    7.0.15-3f2a90c1/         one installation
//	      install.json           its manifest: packages, versions, SHA-256
//	      root/usr/bin/...       what the packages hold
//	      root/lib/*.jar         jars
//	    current -> 7.0.15-3f2a90c1
//	  cassandra@4.1/             another version beside the default one
//
// A database is described by a Recipe that its own package declares:
//
//	Packages  Debian's: "redis-tools", or "valkey-server/bookworm-backports" from
//	          another suite of the same mirror, whose signed lists apt fetches into the
//	          cache
//	Closure   with all that they depend on, the C library too: a newer Debian's
//	          programs, run by their own loader (MySQL 9 from sid)
//	Jars      a lock: jars of Maven Central with their checksums, made by
//	          `go run ./internal/install/jarlock GROUP:ARTIFACT:VERSION...`, embedded
//	          with go:embed and parsed by ParseLock
//	Java      the releases of the Java runtime that it runs on; Programs["java"] of the
//	          installation is JAVA_HOME's, PATH's, or Debian's unpacked beside
//	Build     source in one of Debian's packages that is compiled, when asked for
//	Prepare   a function that builds or writes what the packages lack
//	Manual    where none of this is possible: what a user downloads for --from
//
// Several recipes of one name differ in their Series ("5.0", "4.1") and are installed
// side by side. database.Find is what a database's Find is made of.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
)

// Sentinel errors.
var (
	// ErrNotInstalled says that neither the cache nor PATH holds a database.
	ErrNotInstalled = errors.New("not installed")
	// ErrNoApt says that this machine has no apt to fetch packages with.
	ErrNoApt = errors.New("apt-get and dpkg are needed to fetch packages")
	// ErrNoLists says that apt does not know a package.
	ErrNoLists = errors.New("apt does not know the package")
	// ErrNoMirror says that no mirror of Debian is configured to take a suite from.
	ErrNoMirror = errors.New("apt is configured with no mirror of Debian")
	// ErrChecksum says that a file is not the one that apt's lists or a lock describe.
	ErrChecksum = errors.New("checksum does not match")
	// ErrNotRunning says that an installation's server program cannot run here.
	ErrNotRunning = errors.New("does not run on this machine")
	// ErrManual says that a database has to be downloaded by hand.
	ErrManual = errors.New("cannot be fetched from a package registry")
	// ErrNoJava says that no Java runtime of a release that a database runs on is here.
	ErrNoJava = errors.New("no fitting Java runtime")
	// ErrLock marks a lock of jars that cannot be read.
	ErrLock = errors.New("bad lock of jars")
)

// Recipe says how a database gets onto this machine.
type Recipe struct {
	Name string // as experiments call it
	// Series tells versions apart that are installed side by side ("5.0"), "" where
	// there is one. Of several recipes of a name the first is the default.
	Series string
	// Released is the month of the series' first release ("2025-05"), Ended the month in which its makers' support
	// ended. Ended is empty while the support lasts or if the makers announce none; see SupportChecked.
	Released, Ended string
	Summary         string // one line for a list
	Wanted          Wanted

	// Packages are Debian's packages that hold it and those libraries which the smallest
	// Debian system with apt lacks, as programs are handed over to machines made a minute
	// ago: NAME, or NAME/SUITE for one that only another suite of Debian has.
	Packages []string
	// Closure adds all that the packages depend on, the C library included; all are
	// of the suite that the packages name. The programs are run by that C library's
	// loader, through scripts in their places.
	Closure bool
	// Jars is a lock of jars (ParseLock); they end in the folder lib. The first is
	// the database's own: its version is the installation's.
	Jars string
	// Java is the range of releases of Java that it runs on; the zero value: none.
	Java Java
	// Build, when set, compiles what the packages lack.
	Build *Build
	// Prepare, when set, builds or writes what is missing below root, after the
	// packages are unpacked and before the server is asked to run. The folder is
	// moved afterwards: what it writes must not name root.
	Prepare func(ctx context.Context, root string, progress func(string)) error
	// Manual tells what to download where nothing can be fetched: "the server's
	// archive (mongodb-linux-*.tgz) from https://..., and unpack it".
	Manual string

	// Programs must all be there. The first is the server; it is run with
	// VersionArgs to see that it works and which version it is. A database of jars
	// alone needs none.
	Programs []string
	// Optional are programs that are used where they are there.
	Optional []string
	// Dirs are patterns of further folders that programs may be in, below the root
	// and, for the system's own, below / ("usr/lib/postgresql/*/bin").
	Dirs        []string
	VersionArgs []string
	// Version finds the version in what that run printed, "" when it is not there.
	Version func(output string) string
	// Try, when set, finds out whether programs that a user offers, of that version, can do
	// what a lab asks of them; env is what they need.
	Try func(ctx context.Context, version string, programs map[string]string, env []string) error
}

// SupportChecked is the month in which Released and Ended of all recipes were checked.
const SupportChecked = "2026-11"

// Key names the installation: the recipe's name, with @ and its series where it has
// one ("cassandra@4.1").
func (r Recipe) Key() string {
	if r.Series == "" {
		return r.Name
	}
	return r.Name + "@" + r.Series
}

// Fetched tells whether the recipe can be installed without a user's own download.
func (r Recipe) Fetched() bool {
	return len(r.Packages) > 0 || r.Jars != "" || r.Prepare != nil || r.Build != nil
}

// probeTimeout bounds the run that asks a server for its version, on a machine that is busy.
const probeTimeout = time.Minute

// probe runs the server for its version.
func (r Recipe) probe(ctx context.Context, programs map[string]string, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs[r.Programs[0]], r.VersionArgs...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%s %w: %s %s: %w: %s", r.Name, ErrNotRunning, cmd.Path, strings.Join(r.VersionArgs, " "), err, text)
		if lib := missingLibrary(text); lib != "" {
			err = advice.With(err, "the library %s is missing: install the package that holds it with apt-get", lib)
		} else if errors.Is(err, syscall.ENOEXEC) {
			err = advice.With(err, "it is of another system or processor: give a build for %s on %s", runtime.GOOS, runtime.GOARCH)
		}
		return "", err
	}
	version := r.Version(text)
	if version == "" {
		return "", advice.With(fmt.Errorf("%s %w: no version in what %s %s printed: %q", r.Name, ErrNotRunning, cmd.Path, strings.Join(r.VersionArgs, " "), text),
			"that is another program: %s", r.command())
	}
	if r.Try != nil {
		if err := r.Try(ctx, version, programs, env); err != nil {
			return "", fmt.Errorf("trying %s %s: %w", r.Name, version, err)
		}
	}
	return version, nil
}

// missingLibrary finds the name in the dynamic loader's message
// "error while loading shared libraries: libjemalloc.so.2: cannot open ...".
func missingLibrary(text string) string {
	_, after, ok := strings.Cut(text, "error while loading shared libraries: ")
	if !ok {
		return ""
	}
	lib, _, _ := strings.Cut(after, ":")
	return lib
}

// libraryPath is the environment that makes programs below root find the libraries
// there: Debian keeps them in a folder named after the architecture. What runs by a
// loader of its own needs none.
func libraryPath(root string) []string {
	if loader, err := ownLoader(root); err == nil && loader != "" {
		return nil
	}
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*"} {
		matches, _ := filepath.Glob(filepath.Join(root, pattern)) // the pattern is well-formed
		dirs = append(dirs, matches...)
	}
	if len(dirs) == 0 {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + strings.Join(dirs, ":")}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Wanted says which targets of the Makefile install what a recipe describes. A target also
// requires it of its tests (SKERRY_REQUIRE), so that a skip cannot hide rot; tests of what it
// does not want are left out of it, even where that is installed.
type Wanted int

// From the least wanted on.
const (
	// OnRequest is for who has it or builds it: make conformance tests it where it is there.
	OnRequest Wanted = iota
	// ByConformance is fetched by make conformance.
	ByConformance
	// BySlow is fetched by make slow, and by make conformance.
	BySlow
	// ByTests is fetched by make test, and by all others.
	ByTests
)

// Names returns the arguments of skerry install for all wanted recipes, in
// their order: the name for the first of a name's series, NAME@SERIES for the others.
func Names(recipes []Recipe, wanted func(Recipe) bool) []string {
	var names []string
	first := make(map[string]bool)
	for _, r := range recipes {
		name := r.Key()
		if !first[r.Name] {
			name = r.Name
		}
		first[r.Name] = true
		if wanted(r) {
			names = append(names, name)
		}
	}
	return names
}
