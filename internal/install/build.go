package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

// Errors of builds.
var (
	// ErrBuild is returned for a database that must be compiled if --build is not given.
	ErrBuild = errors.New("it has to be compiled here")
	// ErrNoTools is returned if build tools are missing.
	ErrNoTools = errors.New("tools to compile it are missing")
	// ErrNoSpace is returned if the cache's disk is too small for a build.
	ErrNoSpace = errors.New("too little room on the disk")
)

// Build compiles what packages lack from a Debian source package. It runs only on request, and continues after an
// interruption.
//
//	<cache>/build/mysql-ndb/b69b208d/    named after the source's checksum
//	  src/, obj/ ...                     Compile's own; removed when it is done
type Build struct {
	// Source is the package that holds the source: NAME or NAME/SUITE.
	Source string
	// Cost is an estimate for the user, such as "15 minutes of two cores", without a full stop.
	Cost string
	// Disk is the space that the build needs in bytes, including the package.
	Disk int64
	// Tools are the programs that the build needs; "g++|clang++" means either. Hint is how to install them.
	Tools []string
	Hint  string
	// Compile builds from the package's file into root, which is moved afterwards. The folder work survives an
	// interruption.
	Compile func(ctx context.Context, w Workshop) error
}

// Workshop holds the folders of a build.
type Workshop struct {
	Package string // the file of the source's package
	Work    string // a folder that stays until the build is done
	Root    string // where the results go
	Say     func(format string, args ...any)
}

// allowed returns nil if a recipe's build was requested and can succeed.
func (s Store) allowed(r Recipe) error {
	b := r.Build
	if !s.Build {
		err := fmt.Errorf("installing %s: %w, from Debian's package %s: %s, %s of disk while it lasts", r.Key(), ErrBuild, b.Source, b.Cost, gigabytes(b.Disk))
		return advice.With(err, "skerry install %s --build; or give a build of your own: skerry install %s --from PATH", r.Key(), r.Key())
	}
	var missing []string
	for _, choice := range b.Tools {
		if !anyInPath(choice) {
			missing = append(missing, strings.ReplaceAll(choice, "|", " or "))
		}
	}
	if len(missing) > 0 {
		return advice.With(fmt.Errorf("installing %s: %w: %s", r.Key(), ErrNoTools, strings.Join(missing, ", ")), "%s", b.Hint)
	}
	var free unix.Statfs_t
	if err := unix.Statfs(s.Dir, &free); err != nil {
		return fmt.Errorf("installing %s: reading the free space of %s: %w", r.Key(), s.Dir, err)
	}
	if room := int64(free.Bavail) * free.Bsize; room < b.Disk {
		err := fmt.Errorf("installing %s: %w: %s has %s free, the build takes %s", r.Key(), ErrNoSpace, s.Dir, gigabytes(room), gigabytes(b.Disk))
		return advice.With(err, "make room, or set SKERRY_CACHE to a folder on another disk")
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// anyInPath reports whether PATH has any of several programs ("g++|clang++").
func anyInPath(choice string) bool {
	for name := range strings.SplitSeq(choice, "|") {
		if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}

// compile downloads a build's source and builds it into root. It returns the source package.
func (s Store) compile(ctx context.Context, r Recipe, downloads, root string) (Package, error) {
	sources, err := s.resolve(ctx, r.Name, []string{r.Build.Source}, false)
	if err != nil {
		return Package{}, err
	}
	if err := s.fetchDeb(ctx, downloads, sources[0], "the source"); err != nil {
		return Package{}, err
	}
	return sources[0], s.build(ctx, r, sources[0], downloads, root)
}

// build builds downloaded source into root.
func (s Store) build(ctx context.Context, r Recipe, source Package, downloads, root string) error {
	base := filepath.Join(s.Dir, "build", r.Key())
	work := filepath.Join(base, source.SHA256[:8])
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("creating the folder to build in: %w", err)
	}
	s.report("%s: building %s %s in %s: %s", r.Key(), source.Name, source.Version, work, r.Build.Cost)
	w := Workshop{Package: filepath.Join(downloads, source.File), Work: work, Root: root,
		Say: func(format string, args ...any) { s.report("%s: %s", r.Key(), fmt.Sprintf(format, args...)) }}
	if err := r.Build.Compile(ctx, w); err != nil {
		return advice.With(fmt.Errorf("building %s: %w", r.Key(), err), "the finished part stays in %s: run the same command again to resume", work)
	}
	if err := os.RemoveAll(base); err != nil {
		return fmt.Errorf("removing what was only needed to build: %w", err)
	}
	return nil
}

// ErrNoGo is returned if a program must be built and there is no Go toolchain.
var ErrNoGo = errors.New("the Go toolchain is missing")

// Link makes symbolic links below root, by target. The directory of a link may be a pattern that matches one.
func Link(root string, links map[string]string) error {
	for link, target := range links {
		dirs, err := filepath.Glob(filepath.Join(root, filepath.Dir(link)))
		if err != nil || len(dirs) != 1 {
			return errors.Join(err, fmt.Errorf("linking %s: %d directories, want 1", link, len(dirs)))
		}
		if err := os.Symlink(target, filepath.Join(dirs[0], filepath.Base(link))); err != nil {
			return fmt.Errorf("linking %s: %w", link, err)
		}
	}
	return nil
}

// GoProgram is a program that is built from a main package and the modules it imports. Sums pins all of them.
type GoProgram struct {
	Name string
	// Package is the import path of the main package; "" for Main.
	Package string
	Main    []byte // main.go
	// Module and Sums are go.mod and go.sum. They pin all modules of the program.
	Module, Sums []byte
}

// Build compiles the program into bin below root. It implements Recipe.Prepare.
func (p GoProgram) Build(ctx context.Context, root string, progress func(string)) error {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return advice.With(fmt.Errorf("building %s: %w: %w", p.Name, ErrNoGo, err),
			"install Go 1.26 or newer and try again, or give a build of %s with --from", p.Name)
	}
	dir, err := os.MkdirTemp("", "skerry-build-")
	if err != nil {
		return fmt.Errorf("building %s: %w", p.Name, err)
	}
	defer os.RemoveAll(dir)
	target := p.Package
	if target == "" {
		target = "main.go"
	}
	for name, content := range map[string][]byte{"main.go": p.Main, "go.mod": p.Module, "go.sum": p.Sums} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("building %s: %w", p.Name, err)
		}
	}
	progress("downloading modules and building, about a minute")
	// Go builds main.go, which is named on the command line, despite its build constraint.
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(root, "bin", p.Name), target)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return advice.With(fmt.Errorf("building %s: %w: %s", p.Name, err, strings.TrimSpace(string(out))),
			"check that the module proxy can be reached: go env GOPROXY")
	}
	return nil
}
