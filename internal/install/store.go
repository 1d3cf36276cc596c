package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
	"skerry/internal/base/linger"
)

// ManifestSchema is the version of install.json.
const ManifestSchema = "skerry/install/v1"

// Sources of an installation.
const (
	FromDebian = "debian" // packages unpacked into the cache
	FromMaven  = "maven"  // jars
	FromBuild  = "build"  // built here
	FromPath   = "path"   // a build of the user's own
	FromSystem = "system" // found in PATH
	// FromPackages: the user's Debian packages, unpacked into the cache.
	FromPackages = "packages"
)

// Manifest is install.json. It pins the versions of an installation until its folder is removed.
type Manifest struct {
	Schema    string    `json:"schema"`
	Database  string    `json:"database"`
	Series    string    `json:"series,omitempty"`
	Version   string    `json:"version"` // as reported by the server
	Source    string    `json:"source"`
	Installed time.Time `json:"installed"`
	// Path is the root of a user's build.
	Path     string    `json:"path,omitempty"`
	Packages []Package `json:"packages,omitempty"`
}

// Package is a Debian package as in apt's signed lists, or a jar of a lock (Name is group:artifact).
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Suite   string `json:"suite,omitempty"` // of Debian, "" for the system's own
}

// Store is a cache folder.
type Store struct {
	Dir string
	// Progress, if set, receives each step.
	Progress func(string)
	// Build permits recipes to compile, which takes long.
	Build bool
}

const (
	manifestName = "install.json"
	currentName  = "current"
	rootName     = "root"
)

// DefaultDir is the cache folder: $SKERRY_CACHE, else $XDG_CACHE_HOME/skerry, else /var/cache/skerry for root and
// ~/.cache/skerry for others.
func DefaultDir() (string, error) {
	if d := os.Getenv("SKERRY_CACHE"); d != "" {
		return filepath.Abs(d)
	}
	if os.Getenv("XDG_CACHE_HOME") == "" && os.Geteuid() == 0 {
		return "/var/cache/skerry", nil
	}
	d, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(d, "skerry"), nil
}

// Current returns the manifest of the current installation and the folder of its programs.
func (s Store) Current(name string) (Manifest, string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(s.Dir, name, currentName))
	if errors.Is(err, os.ErrNotExist) {
		return Manifest{}, "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	if err != nil {
		return Manifest{}, "", fmt.Errorf("finding %s in the cache: %w", name, err)
	}
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, "", fmt.Errorf("reading the manifest of %s: %w", name, err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, "", fmt.Errorf("reading %s: %w", path, err)
	}
	if m.Schema != ManifestSchema {
		return Manifest{}, "", fmt.Errorf("reading %s: schema %q, want %q", path, m.Schema, ManifestSchema)
	}
	if m.Source == FromPath {
		return m, m.Path, nil
	}
	return m, filepath.Join(dir, rootName), nil
}

// Register makes a user's build the current installation: path is the server program or a folder that contains it. The
// build stays where it is.
func (s Store) Register(ctx context.Context, r Recipe, path string) (Manifest, error) {
	in, err := r.at(ctx, path)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Schema: ManifestSchema, Database: r.Name, Series: r.Series, Version: in.Version,
		Source: FromPath, Installed: time.Now().UTC().Truncate(time.Second), Path: in.Dir}
	unlock, err := s.lock(ctx, r.Key())
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	tmp, err := os.MkdirTemp(filepath.Join(s.Dir, r.Key()), ".new-")
	if err != nil {
		return Manifest{}, fmt.Errorf("registering %s: %w", r.Name, err)
	}
	defer os.RemoveAll(tmp)
	if err := s.publish(m, tmp, "own-"+digest([]byte(m.Path+m.Version))); err != nil {
		return Manifest{}, err
	}
	s.report("%s %s at %s is in use", r.Key(), m.Version, m.Path)
	return m, nil
}

// publish atomically makes the folder tmp the current installation.
func (s Store) publish(m Manifest, tmp, name string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the manifest of %s: %w", m.Database, err)
	}
	if err := os.WriteFile(filepath.Join(tmp, manifestName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the manifest of %s: %w", m.Database, err)
	}
	if err := os.Chmod(tmp, 0o755); err != nil { // MkdirTemp's 0700 would shut out databases that refuse root
		return fmt.Errorf("installing %s: %w", m.Database, err)
	}
	base := filepath.Join(s.Dir, Recipe{Name: m.Database, Series: m.Series}.Key())
	final := filepath.Join(base, name)
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("replacing %s: %w", final, err)
	}
	if err := os.Rename(tmp, final); err != nil {
		return fmt.Errorf("installing %s: %w", m.Database, err)
	}
	if err := atomicfile.Symlink(filepath.Join(base, currentName), name); err != nil {
		return fmt.Errorf("installing %s: %w", m.Database, err)
	}
	return nil
}

const lockPoll = 200 * time.Millisecond

// lock serialises installs of a database and removes what a killed one left.
func (s Store) lock(ctx context.Context, name string) (func(), error) {
	base := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(base, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	var lock *flock.Lock
	for waiting := false; ; {
		if lock, err = flock.Acquire(f); err == nil {
			break
		}
		if !errors.Is(err, flock.ErrHeld) {
			f.Close()
			return nil, fmt.Errorf("locking the cache: %w", err)
		}
		if !waiting {
			waiting = true
			s.report("%s: another install is running, waiting for it", name)
		}
		if err := linger.For(ctx, lockPoll); err != nil {
			f.Close()
			return nil, fmt.Errorf("waiting for another install of %s: %w", name, err)
		}
	}
	stale, _ := filepath.Glob(filepath.Join(base, ".new-*")) // the pattern is well-formed
	for _, d := range stale {
		if err := os.RemoveAll(d); err != nil {
			lock.Close()
			return nil, fmt.Errorf("removing what an interrupted install left: %w", err)
		}
	}
	return func() { lock.Close() }, nil
}

func (s Store) report(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}
