// Package install puts databases onto this machine without changing it: Debian's
// packages are fetched through apt, checked, and unpacked into a cache folder of
// the user's own. Nothing needs root, no service is started, and removing the
// folder undoes everything.
//
//	<cache>/                     $SKERRY_CACHE, else the user's cache folder
//	  downloads/                 packages fetched and not unpacked yet
//	  redis/
//	    7.0.15-3f2a90c1/         one installation
//	      install.json           its manifest: packages, versions, SHA-256
//	      root/usr/bin/...       what the packages hold
//	    current -> 7.0.15-3f2a90c1
//
// A database is described by a Recipe that its own package declares.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/advice"
)

// Sentinel errors.
var (
	// ErrNotInstalled says that neither the cache nor PATH holds a database.
	ErrNotInstalled = errors.New("not installed")
	// ErrNoApt says that this machine has no apt to fetch packages with.
	ErrNoApt = errors.New("apt-get and dpkg are needed to fetch packages")
	// ErrNoLists says that apt does not know a package.
	ErrNoLists = errors.New("apt does not know the package")
	// ErrChecksum says that a package is not the one that apt's lists describe.
	ErrChecksum = errors.New("checksum does not match")
	// ErrNotRunning says that an installation's server program cannot run here.
	ErrNotRunning = errors.New("does not run on this machine")
)

// Recipe says how a database gets onto this machine.
type Recipe struct {
	Name    string // as experiments call it
	Summary string // one line for a list
	// Packages are Debian's packages that hold it and those libraries which a
	// plain Debian system lacks.
	Packages []string
	// Programs must all be there. The first is the server; it is run with
	// VersionArgs to see that it works and which version it is.
	Programs    []string
	VersionArgs []string
	// Version finds the version in what that run printed, "" when it is not there.
	Version func(output string) string
}

// probeTimeout bounds the run that asks a server for its version.
const probeTimeout = 10 * time.Second

// binDirs are where an installation may keep its programs, below its root. A build
// tree ("src") counts as one.
var binDirs = []string{"usr/bin", "usr/sbin", "bin", "sbin", "src", ""}

// programs finds the recipe's programs below root.
func (r Recipe) programs(root string) (map[string]string, error) {
	found := make(map[string]string)
	for _, p := range r.Programs {
		for _, d := range binDirs {
			path := filepath.Join(root, d, p)
			if executable(path) {
				found[p] = path
				break
			}
		}
		if found[p] == "" {
			return nil, fmt.Errorf("no program %s in %s or its bin, sbin, usr/bin, usr/sbin or src folder: %w", p, root, os.ErrNotExist)
		}
	}
	return found, nil
}

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
		}
		return "", err
	}
	version := r.Version(text)
	if version == "" {
		return "", fmt.Errorf("%s %w: no version in what %s printed: %q", r.Name, ErrNotRunning, cmd.Path, text)
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
// there: Debian keeps them in a folder named after the architecture.
func libraryPath(root string) []string {
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
