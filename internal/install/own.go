package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/base/advice"
)

// ErrMixed is returned for packages of several versions, or packages together with a build.
var ErrMixed = errors.New("do not belong together")

const debSuffix = ".deb"

// Put installs a database by its recipe, or from the user's files if from names them:
//
//	a folder of programs, an unpacked archive, or a program   used where it lies (Register)
//	files of Debian packages, or a folder of them             unpacked into the cache
func (s Store) Put(ctx context.Context, r Recipe, from []string) (Manifest, error) {
	if len(from) == 0 {
		return s.Install(ctx, r)
	}
	debs, err := debFiles(from)
	switch {
	case err != nil:
		return Manifest{}, fmt.Errorf("installing %s: %w", r.Key(), err)
	case len(debs) > 0:
		return s.unpackOwn(ctx, r, debs)
	case len(from) > 1:
		return Manifest{}, advice.With(fmt.Errorf("installing %s: %s %w", r.Key(), strings.Join(from, " and "), ErrMixed),
			"give one folder that holds all programs, or Debian packages alone")
	}
	return s.Register(ctx, r, from[0])
}

// debFiles returns the Debian packages among paths: files, or the content of a single folder with only packages.
func debFiles(paths []string) ([]string, error) {
	if len(paths) == 1 && isDir(paths[0]) {
		entries, err := os.ReadDir(paths[0])
		if err != nil {
			return nil, err
		}
		var files []string
		for _, e := range entries {
			if filepath.Ext(e.Name()) == debSuffix {
				files = append(files, filepath.Join(paths[0], e.Name()))
			} else if e.IsDir() || executable(filepath.Join(paths[0], e.Name())) {
				return nil, nil // a folder of programs, whatever lies beside them
			}
		}
		return files, nil
	}
	debs := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return filepath.Ext(p) != debSuffix })
	if len(debs) > 0 && len(debs) < len(paths) {
		return nil, advice.With(fmt.Errorf("%s %w", strings.Join(paths, " and "), ErrMixed), "give a build, or Debian packages alone")
	}
	return debs, nil
}

// unpackOwn installs the user's Debian packages. The files stay where they are.
func (s Store) unpackOwn(ctx context.Context, r Recipe, debs []string) (Manifest, error) {
	var packages []Package
	for _, path := range debs {
		p, err := ownPackage(ctx, path)
		if err != nil {
			return Manifest{}, fmt.Errorf("installing %s: %w", r.Key(), err)
		}
		packages = append(packages, p)
	}
	unlock, err := s.lock(ctx, r.Key())
	if err != nil {
		return Manifest{}, err
	}
	defer unlock()
	// The recipe's additions do not apply to the user's packages.
	r.Packages, r.Closure, r.Jars, r.Build, r.Prepare = nil, false, "", nil, nil
	return s.unpack(ctx, r, "", packages, nil, FromPackages)
}

// ownPackage reads the control data of a Debian package. It refuses packages of another architecture.
func ownPackage(ctx context.Context, path string) (Package, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Package{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return Package{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return Package{}, advice.With(fmt.Errorf("unpacking %s: %w: %w", path, ErrNoApt, err), "unpack it yourself and give the folder: --from FOLDER")
	}
	out, err := command(ctx, "", nil, "dpkg-deb", "--showformat=${Package}\n${Version}\n${Architecture}", "--show", path)
	if err != nil {
		return Package{}, fmt.Errorf("reading %s: %w", path, err)
	}
	fields := strings.Split(string(out), "\n")
	if len(fields) != 3 {
		return Package{}, fmt.Errorf("reading %s: dpkg-deb printed %q: want a name, a version and an architecture", path, out)
	}
	own, err := command(ctx, "", nil, "dpkg", "--print-architecture")
	if err != nil {
		return Package{}, err
	}
	if here := strings.TrimSpace(string(own)); fields[2] != "all" && fields[2] != here {
		return Package{}, advice.With(fmt.Errorf("%s is of the architecture %s, and this machine is %s: %w", path, fields[2], here, ErrNotRunning),
			"download the package for %s", here)
	}
	return Package{Name: fields[0], Version: fields[1], File: path, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// packageGiven returns the error for an experiment that names a package file, which must be installed first.
func packageGiven(r Recipe, path string) error {
	return advice.With(fmt.Errorf("finding %s: %s is a package and no program: %w", r.Name, path, fs.ErrInvalid),
		"install it first: skerry install %s --from %s", r.Key(), path)
}
