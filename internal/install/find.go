package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"skerry/internal/advice"
)

// Installation is a database found on this machine. It is what package database calls
// so, and more; this package does not depend on that one, so that tests of every
// package can ask what is installed.
type Installation struct {
	Database string
	Version  string
	Source   string            // FromDebian, FromPath or FromSystem
	Dir      string            // the root of an unpacked one, "" for the system's own
	Programs map[string]string // by name
	Env      []string          // that they need
}

// Find locates an installation: at from when that is given, else in the cache, else
// in PATH. Each is asked to run before it is believed, except for the cache, whose
// manifest says what it is.
func (s Store) Find(ctx context.Context, r Recipe, from string) (Installation, error) {
	if from != "" {
		return r.at(ctx, from)
	}
	m, root, err := s.Current(r.Name)
	if err == nil {
		programs, err := r.programs(root)
		if err != nil {
			return Installation{}, advice.With(fmt.Errorf("the installation of %s in the cache is damaged: %w", r.Name, err),
				"install it again: skerry install %s", r.Name)
		}
		return Installation{Database: r.Name, Version: m.Version, Source: m.Source, Dir: root, Programs: programs, Env: libraryPath(root)}, nil
	}
	if !errors.Is(err, ErrNotInstalled) {
		return Installation{}, err
	}
	programs := make(map[string]string)
	for _, p := range r.Programs {
		path, err := exec.LookPath(p)
		if err != nil {
			return Installation{}, advice.With(fmt.Errorf("%s is %w: no %s in the cache (%s) or in PATH", r.Name, ErrNotInstalled, p, s.Dir),
				"skerry install %s", r.Name)
		}
		programs[p] = path
	}
	version, err := r.probe(ctx, programs, nil)
	if err != nil {
		return Installation{}, err
	}
	return Installation{Database: r.Name, Version: version, Source: FromSystem, Programs: programs}, nil
}

// at looks at a build of the user's own: a folder or the server program itself.
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
		if base := filepath.Base(path); !slices.Contains(r.Programs, base) {
			return Installation{}, fmt.Errorf("finding %s: %s is none of its programs: %v", r.Name, path, r.Programs)
		}
	}
	programs, err := r.programs(root)
	if err != nil {
		return Installation{}, fmt.Errorf("finding %s: %w", r.Name, err)
	}
	env := libraryPath(root)
	version, err := r.probe(ctx, programs, env)
	if err != nil {
		return Installation{}, err
	}
	return Installation{Database: r.Name, Version: version, Source: FromPath, Dir: root, Programs: programs, Env: env}, nil
}

// Listed is one database of a list.
type Listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Version string `json:"version,omitempty"` // "" when it is not installed
	Source  string `json:"source,omitempty"`
	Path    string `json:"path,omitempty"` // of its server program
	Problem string `json:"problem,omitempty"`
}

// List looks for every database.
func (s Store) List(ctx context.Context, recipes []Recipe) []Listed {
	var rows []Listed
	for _, r := range recipes {
		row := Listed{Name: r.Name, Summary: r.Summary}
		in, err := s.Find(ctx, r, "")
		switch {
		case err == nil:
			row.Version, row.Source, row.Path = in.Version, in.Source, in.Programs[r.Programs[0]]
		case !errors.Is(err, ErrNotInstalled):
			row.Problem = err.Error()
		}
		rows = append(rows, row)
	}
	return rows
}
