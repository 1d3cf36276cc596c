package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// Installation is an installed database. It does not depend on package database, so that tests of every package can use it.
type Installation struct {
	Database string
	Version  string
	Source   string // FromDebian, FromMaven, FromBuild, FromPath, FromPackages or FromSystem
	// Dir is the root of an unpacked installation, "" for the system's. Jars are in its folder lib.
	Dir      string
	Programs map[string]string // by name
	Env      []string          // that they need
}

// Find locates an installation: at from if that is set, else in the cache, else in PATH. It runs the server to verify it,
// except in the cache, where a manifest describes it. A user's build is verified again after a change.
func (s Store) Find(ctx context.Context, r Recipe, from string) (Installation, error) {
	if from != "" {
		return r.at(ctx, from)
	}
	m, root, err := s.Current(r.Key())
	if err == nil {
		in := Installation{Database: r.Name, Version: m.Version, Source: m.Source, Dir: root, Env: libraryPath(root)}
		if in.Programs, err = r.programs(root); err == nil {
			err = r.java(ctx, root, in.Programs)
		}
		if err == nil && r.Jars != "" {
			_, err = r.jarVersion(root)
		}
		if err == nil && m.Source == FromPath && changed(in.Programs, m.Installed) {
			in.Version, err = r.inspect(ctx, root, in.Programs)
		}
		if err != nil && !errors.Is(err, ErrNoJava) {
			err = advice.With(fmt.Errorf("the installation of %s in the cache is damaged: %w", r.Key(), err), "install it again: %s", r.command())
		}
		if err != nil {
			return Installation{}, err
		}
		return in, nil
	}
	if !errors.Is(err, ErrNotInstalled) {
		return Installation{}, err
	}
	return s.system(ctx, r)
}

// changed reports whether any program differs from the one registered at since. It compares the change time, because a copy
// may preserve the modification time. Manifests have a resolution of one second.
func changed(programs map[string]string, since time.Time) bool {
	for _, path := range programs {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err == nil && time.Unix(st.Ctim.Unix()).After(since.Add(time.Second)) {
			return true
		}
	}
	return false
}

func (s Store) system(ctx context.Context, r Recipe) (Installation, error) {
	missing := fmt.Errorf("%s is %w: it is not in the cache (%s)", r.Key(), ErrNotInstalled, s.Dir)
	if len(r.Programs) == 0 {
		return Installation{}, advice.With(missing, "%s", r.command())
	}
	programs, err := r.inPath()
	if err == nil {
		err = r.java(ctx, "", programs)
	}
	if err != nil {
		return Installation{}, advice.With(fmt.Errorf("%w, and %w", missing, err), "%s", r.command())
	}
	version, err := r.probe(ctx, programs, nil)
	if err != nil {
		return Installation{}, err
	}
	if r.Series != "" && version != r.Series && !strings.HasPrefix(version, r.Series+".") {
		return Installation{}, advice.With(fmt.Errorf("%w, and PATH has %s", missing, version),
			"%s, or use the one in PATH: skerry install %s --from %s", r.command(), r.Name, filepath.Dir(programs[r.Programs[0]]))
	}
	return Installation{Database: r.Name, Version: version, Source: FromSystem, Programs: programs}, nil
}

// command is the command that installs the database.
func (r Recipe) command() string {
	if !r.Fetched() {
		return "download " + r.Manual + ", then: skerry install " + r.Key() + " --from PATH"
	}
	if r.Build != nil {
		return "skerry install " + r.Key() + " --build (" + r.Build.Cost + ", " + gigabytes(r.Build.Disk) + " of disk)"
	}
	return "skerry install " + r.Key()
}

// at returns the user's build at a folder or program.
func (r Recipe) at(ctx context.Context, path string) (Installation, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Installation{}, fmt.Errorf("finding %s: %w", r.Name, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Installation{}, fmt.Errorf("finding %s: %w", r.Name, err)
	}
	root := path
	if !info.IsDir() {
		root = filepath.Dir(path)
		if known := append(slices.Clone(r.Programs), r.Optional...); !slices.Contains(known, filepath.Base(path)) {
			if filepath.Ext(path) == debSuffix {
				return Installation{}, packageGiven(r, path)
			}
			return Installation{}, fmt.Errorf("finding %s: %s is none of its programs: %v", r.Name, path, known)
		}
	}
	in := Installation{Database: r.Name, Source: FromPath, Dir: root, Env: libraryPath(root)}
	if in.Programs, err = r.programs(root); err != nil {
		return Installation{}, fmt.Errorf("finding %s: %w", r.Name, err)
	}
	if in.Version, err = r.inspect(ctx, root, in.Programs); err != nil {
		return Installation{}, fmt.Errorf("finding %s: %w", r.Name, err)
	}
	return in, nil
}

// inspect adds Java to the programs and returns the version that the server below root prints.
func (r Recipe) inspect(ctx context.Context, root string, programs map[string]string) (string, error) {
	if err := r.java(ctx, root, programs); err != nil {
		return "", err
	}
	if r.Jars != "" {
		return r.jarVersion(root)
	}
	return r.probe(ctx, programs, libraryPath(root))
}

// Listed is an entry of List.
type Listed struct {
	Name    string `json:"name"` // the argument of skerry install
	Summary string `json:"summary"`
	// Default is set for the series selected by the name alone.
	Default bool `json:"default,omitempty"`
	// Released is the month of the series' first release ("2025-05").
	Released string `json:"released,omitempty"`
	// Ended is the month in which the vendor's support ends or ended, as of SupportChecked.
	Ended   string `json:"support_ended,omitempty"`
	Version string `json:"version,omitempty"` // "" when it is not installed
	Source  string `json:"source,omitempty"`
	Path    string `json:"path,omitempty"` // of its server program, or its folder
	Problem string `json:"problem,omitempty"`
	// Advice explains how to install a missing database.
	Advice string `json:"advice,omitempty"`
}

// List looks up every database.
func (s Store) List(ctx context.Context, recipes []Recipe) []Listed {
	var rows []Listed
	named := map[string]bool{}
	for _, r := range recipes {
		row := Listed{Name: r.Key(), Summary: r.Summary, Default: !named[r.Name], Released: r.Released, Ended: r.Ended}
		named[r.Name] = true
		in, err := s.Find(ctx, r, "")
		switch {
		case err == nil:
			row.Version, row.Source, row.Path = in.Version, in.Source, in.Dir
			if len(r.Programs) > 0 {
				row.Path = in.Programs[r.Programs[0]]
			}
		case errors.Is(err, ErrNotInstalled):
			row.Advice = advice.Of(err)
		default:
			row.Problem, row.Advice = err.Error(), advice.Of(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// binDirs are the program folders below an installation's root. "src" is that of a build tree, "loader" that of
// installations by Skerry 0.1.0.
var binDirs = []string{"loader", "usr/bin", "usr/sbin", "bin", "sbin", "src", ""}

// systemDirs are searched after PATH, because a user's PATH lacks them.
var systemDirs = []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}

func (r Recipe) programs(root string) (map[string]string, error) {
	dirs, err := r.programDirs(root)
	if err != nil {
		return nil, err
	}
	return r.collect(func(p string) (string, error) {
		for _, d := range dirs {
			if path := filepath.Join(root, d, p); executable(path) {
				return path, nil
			}
		}
		return "", advice.With(fmt.Errorf("no program %s in %s or its bin, sbin, usr/bin, usr/sbin or src folder: %w", p, root, os.ErrNotExist), "%s", r.command())
	})
}

// programDirs returns the folders that may hold programs, relative to root: those of the recipe first.
func (r Recipe) programDirs(root string) ([]string, error) {
	dirs := binDirs
	for _, pattern := range r.Dirs {
		matches, _ := filepath.Glob(filepath.Join(root, pattern)) // a recipe's pattern is well-formed
		for _, m := range matches {
			rel, err := filepath.Rel(root, m)
			if err != nil {
				return nil, fmt.Errorf("finding programs of %s: %w", r.Name, err)
			}
			dirs = append([]string{rel}, dirs...)
		}
	}
	return dirs, nil
}

func (r Recipe) inPath() (map[string]string, error) {
	dirs := systemDirs
	for _, pattern := range r.Dirs {
		matches, _ := filepath.Glob(filepath.Join("/", pattern)) // a recipe's pattern is well-formed
		dirs = append(dirs, matches...)
	}
	return r.collect(func(p string) (string, error) {
		path, err := exec.LookPath(p)
		if err == nil {
			return filepath.Abs(path)
		}
		for i := len(dirs) - 1; i >= 0; i-- { // of several releases the newest
			if path := filepath.Join(dirs[i], p); executable(path) {
				return path, nil
			}
		}
		return "", fmt.Errorf("no %s in PATH: %w", p, err)
	})
}

// collect looks up all required and optional programs.
func (r Recipe) collect(look func(program string) (string, error)) (map[string]string, error) {
	found := make(map[string]string)
	for _, p := range r.Programs {
		path, err := look(p)
		if err != nil {
			return nil, err
		}
		found[p] = path
	}
	for _, p := range r.Optional {
		if path, err := look(p); err == nil {
			found[p] = path
		}
	}
	return found, nil
}
