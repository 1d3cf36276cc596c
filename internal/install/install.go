// Package install installs databases without changing the machine. It downloads Debian packages through apt and jars from
// Maven Central, verifies them, and unpacks them into a cache folder of the user. It needs no root and starts no service.
// Removing the folder removes everything.
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
// The database's package declares a Recipe:
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
// Recipes with the same name differ in Series ("5.0", "4.1") and are installed side by side.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
)

var (
	// ErrNotInstalled is returned if a database is neither in the cache nor in PATH.
	ErrNotInstalled = errors.New("not installed")
	// ErrNoApt is returned on a machine without apt.
	ErrNoApt = errors.New("apt-get and dpkg are needed to fetch packages")
	// ErrNoLists is returned if apt does not know a package.
	ErrNoLists = errors.New("apt does not know the package")
	// ErrNoMirror is returned if no Debian mirror is configured.
	ErrNoMirror = errors.New("apt is configured with no mirror of Debian")
	// ErrChecksum is returned for a file that differs from apt's lists or a lock.
	ErrChecksum = errors.New("checksum does not match")
	// ErrNotRunning is returned if the server cannot run here.
	ErrNotRunning = errors.New("does not run on this machine")
	// ErrManual is returned for a database that must be downloaded by hand.
	ErrManual = errors.New("cannot be fetched from a package registry")
	// ErrNoJava is returned without a compatible Java runtime.
	ErrNoJava = errors.New("no fitting Java runtime")
	// ErrLock is returned for an invalid lock of jars.
	ErrLock = errors.New("bad lock of jars")
)

// Recipe describes how to install a database.
type Recipe struct {
	Name string // as experiments call it
	// Series distinguishes versions that are installed side by side ("5.0"), "" with a single version. The first recipe of
	// a name is the default.
	Series string
	// Released is the month of the series' first release ("2025-05"), Ended the month in which the vendor's support ended,
	// empty if it lasts or is not announced; see SupportChecked.
	Released, Ended string
	Summary         string // one line for a list
	Wanted          Wanted

	// Packages are Debian packages, NAME or NAME/SUITE for another suite than the system's. They include the libraries that
	// the smallest Debian system with apt lacks, because programs are also copied to new machines.
	Packages []string
	// Closure adds all dependencies, the C library included; all packages are of one suite. Scripts that replace the
	// programs run them with that C library's loader.
	Closure bool
	// Jars is a lock of jars (ParseLock) for the folder lib. The first jar's version is the installation's.
	Jars string
	// Java is the range of compatible Java releases; the zero value for none.
	Java Java
	// Build compiles what the packages lack; nil for nothing.
	Build *Build
	// Prepare, if set, makes missing files below root after unpacking and before the server is verified. The folder is
	// moved afterwards: files must not contain the path root.
	Prepare func(ctx context.Context, root string, progress func(string)) error
	// Manual says what to download by hand: "the server's archive (mongodb-linux-*.tgz) from https://..., and unpack it".
	Manual string

	// Programs are required. The first is the server, which is run with VersionArgs to verify it. A database of jars may
	// have none.
	Programs []string
	// Optional programs are used if they exist.
	Optional []string
	// Dirs are patterns of further program folders, below the root and, for the system's installation, below /
	// ("usr/lib/postgresql/*/bin").
	Dirs        []string
	VersionArgs []string
	// Version extracts the version from the server's output, "" if there is none.
	Version func(output string) string
	// Try, if set, checks whether a user's programs of that version have the features that labs need. env is their
	// environment.
	Try func(ctx context.Context, version string, programs map[string]string, env []string) error
}

// MatchVersion returns a Recipe's Version: the first group of a pattern.
func MatchVersion(pattern string) func(output string) string {
	p := regexp.MustCompile(pattern)
	return func(output string) string {
		if m := p.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	}
}

// SupportChecked is the month in which Released and Ended of all recipes were last checked.
const SupportChecked = "2026-11"

// Key is the recipe's name, followed by @ and its series if it has one ("cassandra@4.1").
func (r Recipe) Key() string {
	if r.Series == "" {
		return r.Name
	}
	return r.Name + "@" + r.Series
}

// Fetched reports whether the recipe needs no manual download.
func (r Recipe) Fetched() bool {
	return len(r.Packages) > 0 || r.Jars != "" || r.Prepare != nil || r.Build != nil
}

// probeTimeout bounds the server's version command on a busy machine.
const probeTimeout = time.Minute

// probe runs the server's version command.
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

// missingLibrary extracts the name from the dynamic loader's message "error while loading shared libraries:
// libjemalloc.so.2: cannot open ...".
func missingLibrary(text string) string {
	_, after, ok := strings.Cut(text, "error while loading shared libraries: ")
	if !ok {
		return ""
	}
	lib, _, _ := strings.Cut(after, ":")
	return lib
}

// libraryPath returns the environment in which programs below root find their libraries. Debian keeps those in a folder
// named after the architecture. Closures do not need it.
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

// Wanted says which Makefile targets install a recipe. The target also requires the recipe in its tests (SKERRY_REQUIRE),
// so that a skip cannot hide a broken test, and excludes tests of other recipes even if they are installed.
type Wanted int

// In increasing order.
const (
	// OnRequest is installed by users only; make conformance tests it if it exists.
	OnRequest Wanted = iota
	// ByConformance is installed by make conformance.
	ByConformance
	// BySlow is installed by make slow and make conformance.
	BySlow
	// ByTests is installed by all test targets.
	ByTests
)

// Names returns the arguments of skerry install for all wanted recipes, in order: the name for the first series of a name,
// NAME@SERIES for the others.
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
