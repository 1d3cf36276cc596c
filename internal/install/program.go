package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"skerry/internal/base/advice"
)

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
				return nil, fmt.Errorf("looking for programs of %s: %w", r.Name, err)
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
