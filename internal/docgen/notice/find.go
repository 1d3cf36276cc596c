package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// architectures are those that packages are made for.
var architectures = []string{"amd64", "arm64"}

// modules are those that are linked into a program on some architecture, and Go's own
// library. That one is named without its version, which is the compiler's.
func modules(ctx context.Context, root string) ([]Part, error) {
	library, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking where Go is: %w", err)
	}
	parts := []Part{{Name: "Go", dir: strings.TrimSpace(string(library))}}
	for _, arch := range architectures {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", "./cmd/...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing the modules of the programs: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 3 || f[1] == "" {
				continue // Skerry itself, which has no version
			}
			if p := (Part{f[0], f[1], f[2]}); !slices.Contains(parts, p) {
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// imported finds the packages that a TypeScript file imports.
var imported = regexp.MustCompile(`(?m)^(?:import|export)[^'"]*['"]((?:@[\w-]+/)?[\w-]+)[^'"]*['"]`)

// packages are those that the front end imports, and what these depend on.
func packages(root string) ([]Part, error) {
	lock, err := readLock(filepath.Join(root, "web", "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(filepath.Join(root, "web", "src"), func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".ts" || strings.HasSuffix(file, ".test.ts") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range imported.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the front end's imports: %w", err)
	}
	var parts []Part
	for i := 0; i < len(names); i++ { // it grows
		at := "node_modules/" + names[i]
		p, ok := lock[at]
		if !ok || slices.Contains(names[:i], names[i]) {
			continue // a module of Node.js, or known
		}
		parts = append(parts, Part{names[i], p.Version, filepath.Join(root, "web", at)})
		for name := range p.Dependencies {
			names = append(names, name)
		}
	}
	return parts, nil
}

type locked struct {
	Version      string            `json:"version"`
	Dependencies map[string]string `json:"dependencies"`
}

func readLock(path string) (map[string]locked, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the front end's lock: %w", err)
	}
	var lock struct {
		Packages map[string]locked `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return lock.Packages, nil
}

// licence matches the names of files that hold licences, and notices that go with them.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

var errNoLicence = errors.New("no file of it looks like one")

func licences(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading its directory: %w", err)
	}
	var texts []string
	for _, f := range files {
		if f.IsDir() || !licence.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(texts) == 0 {
		return nil, errNoLicence
	}
	return texts, nil
}
