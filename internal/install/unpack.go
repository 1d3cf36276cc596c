package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
)

const (
	libDir = "lib"
)

// Install downloads and unpacks a recipe. It keeps a current installation that runs and matches the recipe, and resumes an
// interrupted one.
func (s Store) Install(ctx context.Context, r Recipe) (Manifest, error) {
	if !r.Fetched() {
		err := fmt.Errorf("installing %s: it %w", r.Key(), ErrManual)
		return Manifest{}, advice.With(err, "%s", r.command())
	}
	var jars []Jar
	if r.Jars != "" {
		var err error
		if jars, err = ParseLock(r.Jars); err != nil {
			return Manifest{}, fmt.Errorf("installing %s: %w", r.Key(), err)
		}
	}
	unlock, err := s.lock(ctx, r.Key())
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	if m, root, err := s.Current(r.Key()); err == nil && m.Source != FromPath && m.Source != FromPackages {
		_, err := r.check(ctx, root)
		switch {
		case err == nil && m.holds(r.Packages, jars):
			s.report("%s %s is installed", r.Key(), m.Version)
			return m, nil
		case err == nil:
			s.report("%s: the installation in the cache is of other packages or jars, installing it again", r.Key())
		default:
			s.report("%s: the installation in the cache does not run, installing it again", r.Key())
		}
	}
	if r.Build != nil {
		if err := s.allowed(r); err != nil {
			return Manifest{}, err
		}
	}
	packages, err := s.resolve(ctx, r.Name, r.Packages, r.Closure)
	if err != nil {
		return Manifest{}, err
	}
	runtime, err := s.resolveRuntime(ctx, r)
	if err != nil {
		return Manifest{}, err
	}
	packages = append(packages, runtime...)
	downloads := filepath.Join(s.Dir, "downloads", r.Key())
	if err := os.MkdirAll(downloads, 0o755); err != nil {
		return Manifest{}, fmt.Errorf("creating the cache folder: %w", err)
	}
	for i, p := range packages {
		if err := s.fetchDeb(ctx, downloads, p, fmt.Sprintf("%d/%d", i+1, len(packages))); err != nil {
			return Manifest{}, err
		}
	}
	if len(jars) > 0 {
		if err := s.fetchJars(ctx, r.Key(), downloads, jars); err != nil {
			return Manifest{}, err
		}
	}
	m, err := s.unpack(ctx, r, downloads, packages, jars, r.source())
	if err != nil {
		return Manifest{}, err
	}
	if err := os.RemoveAll(downloads); err != nil {
		return m, fmt.Errorf("removing packages that were unpacked: %w", err)
	}
	return m, nil
}

// holds reports whether an installation includes these packages (NAME or NAME/SUITE) and jars. An older recipe may have
// named fewer libraries, which this machine has but a machine that receives the installation may lack.
func (m Manifest) holds(packages []string, jars []Jar) bool {
	there := make(map[string]bool, 2*len(m.Packages))
	for _, p := range m.Packages {
		there[p.SHA256], there[p.Name] = true, true
	}
	for _, p := range packages {
		if name, _, _ := strings.Cut(p, "/"); !there[name] {
			return false
		}
	}
	for _, j := range jars {
		if !there[j.SHA256] {
			return false
		}
	}
	return true
}

// unpack makes the current installation from packages and jars in the folder downloads, or at a package's File.
func (s Store) unpack(ctx context.Context, r Recipe, downloads string, packages []Package, jars []Jar, source string) (Manifest, error) {
	tmp, err := os.MkdirTemp(filepath.Join(s.Dir, r.Key()), ".new-")
	if err != nil {
		return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Key(), err)
	}
	defer os.RemoveAll(tmp)
	root := filepath.Join(tmp, rootName)
	if err := os.Mkdir(root, 0o755); err != nil {
		return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Key(), err)
	}
	var sums bytes.Buffer
	for _, p := range packages {
		s.report("%s: unpacking %s", r.Key(), p.Name)
		if _, err := command(ctx, downloads, nil, "dpkg", "-x", p.File, root); err != nil {
			return Manifest{}, fmt.Errorf("unpacking %s: %w", p.File, err)
		}
		sums.WriteString(p.SHA256)
	}
	if err := relink(root); err != nil {
		return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Key(), err)
	}
	if len(jars) > 0 {
		if err := moveJars(downloads, filepath.Join(root, libDir), jars); err != nil {
			return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Key(), err)
		}
	}
	for _, j := range jars {
		packages = append(packages, j.pack())
		sums.WriteString(j.SHA256)
	}
	if r.Build != nil {
		compiled, err := s.compile(ctx, r, downloads, root)
		if err != nil {
			return Manifest{}, err
		}
		packages = append(packages, compiled)
		sums.WriteString(compiled.SHA256)
	}
	if r.Prepare != nil {
		s.report("%s: preparing it", r.Key())
		if err := r.Prepare(ctx, root, func(step string) { s.report("%s: %s", r.Key(), step) }); err != nil {
			return Manifest{}, fmt.Errorf("preparing %s: %w", r.Key(), err)
		}
	}
	if r.Closure {
		if err := r.wrapPrograms(root); err != nil {
			return Manifest{}, fmt.Errorf("unpacking %s: %w", r.Key(), err)
		}
	}
	version, err := r.check(ctx, root)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Schema: ManifestSchema, Database: r.Name, Series: r.Series, Version: version, Source: source,
		Installed: time.Now().UTC().Truncate(time.Second), Packages: packages}
	if err := s.publish(m, tmp, version+"-"+digest(sums.Bytes())); err != nil {
		return Manifest{}, err
	}
	s.report("%s %s installed", r.Key(), version)
	return m, nil
}

func (r Recipe) source() string {
	switch {
	case r.Build != nil:
		return FromBuild
	case r.Jars != "":
		return FromMaven
	case len(r.Packages) > 0:
		return FromDebian
	}
	return FromBuild
}

// check runs the version command of the server below root.
func (r Recipe) check(ctx context.Context, root string) (string, error) {
	programs, err := r.programs(root)
	if err != nil {
		return "", err
	}
	return r.inspect(ctx, root, programs)
}

func moveJars(downloads, lib string, jars []Jar) error {
	if err := os.MkdirAll(lib, 0o755); err != nil {
		return err
	}
	for _, j := range jars {
		if err := os.Rename(filepath.Join(downloads, j.File()), filepath.Join(lib, j.File())); err != nil {
			return err
		}
	}
	return nil
}

// relink redirects absolute links within packages to paths below root: Debian keeps a Java runtime's settings in /etc.
func relink(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := os.Readlink(path)
		if err != nil || !filepath.IsAbs(target) {
			return err
		}
		if _, err := os.Lstat(filepath.Join(root, target)); err != nil {
			return nil // meant is the system's own
		}
		rel, err := filepath.Rel(filepath.Dir(path), filepath.Join(root, target))
		if err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Symlink(rel, path)
	})
}

// loaderScript replaces a program of a closure. It runs the program with the closure's own dynamic loader and
// libraries. The program sees the path of the script as its own, because initdb looks for other programs next to itself
// and redis-server, a link to redis-check-rdb, acts by its name. The kernel names a process after the file that was
// executed, and Galera's scripts look for processes by name: the loader is executed through a link with the program's
// name. The process becomes the program.
const loaderScript = `#!/bin/sh
self=$(readlink -f "$0")
dir=$(dirname "$self")
name=$(basename "$0")
root=$(cd "$dir/%[1]s" && pwd -P)
exec "$dir/%[4]s/$name" --library-path "$root/%[2]s" --argv0 "$dir/$name" "$self%[3]s" "$@"
`

const (
	// elfSuffix is appended to the name of a program that a script replaces.
	elfSuffix = ".elf"
	// loaderLinks is a folder next to programs with a link to the loader for each of them.
	loaderLinks = ".loader"
)

// ownLoader returns the dynamic loader of a closure relative to root, or "" if root has no C library.
func ownLoader(root string) (string, error) {
	loaders, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*/ld-linux-*.so.*")) // the pattern is well-formed
	if len(loaders) == 0 {
		return "", nil
	}
	return filepath.Rel(root, loaders[0])
}

// wrapPrograms replaces every ELF program of a closure by a script that runs it with the closure's loader.
func (r Recipe) wrapPrograms(root string) error {
	loader, err := ownLoader(root)
	if err != nil {
		return err
	}
	if loader == "" {
		return fmt.Errorf("no loader in the C library's package: %w", os.ErrNotExist)
	}
	dirs, err := r.programDirs(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		up, err := filepath.Rel(dir, ".")
		if err != nil {
			return err
		}
		script := fmt.Sprintf(loaderScript, up, filepath.Dir(loader), elfSuffix, loaderLinks)
		for _, e := range entries {
			path := filepath.Join(root, dir, e.Name())
			if !e.IsDir() && !strings.HasSuffix(path, elfSuffix) {
				if err := linkLoader(filepath.Join(root, dir), e.Name(), filepath.Join("..", up, loader)); err != nil {
					return err
				}
			}
			if !e.Type().IsRegular() || strings.HasSuffix(path, elfSuffix) || !executable(path) || !isELF(path) {
				continue
			}
			if err := os.Rename(path, path+elfSuffix); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// linkLoader makes the link through which a program in dir executes the loader.
func linkLoader(dir, program, loader string) error {
	links := filepath.Join(dir, loaderLinks)
	if err := os.MkdirAll(links, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(loader, filepath.Join(links, program)); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func isELF(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "\x7fELF"
}
