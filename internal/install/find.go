package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// Installation is a database found on this machine. It is what package database calls
// so, and more; this package does not depend on that one, so that tests of every
// package can ask what is installed.
type Installation struct {
	Database string
	Version  string
	Source   string // FromDebian, FromMaven, FromBuild, FromPath, FromPackages or FromSystem
	// Dir is the root of an unpacked one, "" for the system's own. Jars are in its
	// folder lib.
	Dir      string
	Programs map[string]string // by name
	Env      []string          // that they need
}

// Find locates an installation: at from when that is given, else in the cache, else
// in PATH. Each is asked to run before it is believed, except for the cache, whose
// manifest describes it. A user's own build is asked again after a change.
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

// changed tells whether any of a user's programs is another file than the one that was taken into use then.
// A copy may keep the time of what it was copied from: what counts is when the file here got its content or
// its name. Manifests tell whole seconds.
func changed(programs map[string]string, since time.Time) bool {
	for _, path := range programs {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err == nil && time.Unix(st.Ctim.Unix()).After(since.Add(time.Second)) {
			return true
		}
	}
	return false
}

// system looks for the system's own.
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

// command is what a user types to have the database.
func (r Recipe) command() string {
	if !r.Fetched() {
		return "download " + r.Manual + ", then: skerry install " + r.Key() + " --from PATH"
	}
	if r.Build != nil {
		return "skerry install " + r.Key() + " --build (" + r.Build.Cost + ", " + gigabytes(r.Build.Disk) + " of disk)"
	}
	return "skerry install " + r.Key()
}

// at looks at a build of the user's own: a folder or one of its programs.
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

// inspect completes the programs with Java and asks the installation below root for its
// version.
func (r Recipe) inspect(ctx context.Context, root string, programs map[string]string) (string, error) {
	if err := r.java(ctx, root, programs); err != nil {
		return "", err
	}
	if r.Jars != "" {
		return r.jarVersion(root)
	}
	return r.probe(ctx, programs, libraryPath(root))
}

// Listed is one database of a list.
type Listed struct {
	Name    string `json:"name"` // the argument of skerry install
	Summary string `json:"summary"`
	// Default is set for the series that the bare name stands for.
	Default bool `json:"default,omitempty"`
	// Released is the month of the series' first release ("2025-05").
	Released string `json:"released,omitempty"`
	// Ended is the month in which the support of its makers ends or ended, as known in SupportChecked.
	Ended   string `json:"support_ended,omitempty"`
	Version string `json:"version,omitempty"` // "" when it is not installed
	Source  string `json:"source,omitempty"`
	Path    string `json:"path,omitempty"` // of its server program, or its folder
	Problem string `json:"problem,omitempty"`
	// Advice is how to have it where it is not there.
	Advice string `json:"advice,omitempty"`
}

// List looks for every database.
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
