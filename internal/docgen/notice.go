package docgen

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Part is a module or package of somebody else's in the program.
type Part struct {
	Name, Version string
	// dir holds its licences.
	dir string
}

func (p Part) String() string { return strings.TrimSpace(p.Name + " " + p.Version) }

const noticeHead = `Skerry
Copyright 2026 The Skerry maintainers
Licensed under the Apache License, Version 2.0: see LICENSE.

The program holds the parts below, each under its own licence. Their source code is to be had from the Go
module proxy and the npm registry under these names and versions. "make notice" wrote this file.

`

// WriteNotice prints the notice of the repository at root: all parts, then every licence once, with
// the parts that are under it. Modules have to be in Go's module cache, and packages in
// web/node_modules.
func WriteNotice(ctx context.Context, w io.Writer, root string) error {
	parts, err := CollectParts(ctx, root)
	if err != nil {
		return err
	}
	byText := map[string][]string{}
	for _, p := range parts {
		texts, err := readLicences(p.dir)
		if err != nil {
			return fmt.Errorf("the licence of %s: %w", p, err)
		}
		for _, text := range texts {
			byText[text] = append(byText[text], p.String())
		}
	}
	var b strings.Builder
	b.WriteString(noticeHead)
	for _, p := range parts {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	texts := make([]string, 0, len(byText))
	for text := range byText {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(x, y string) int {
		return cmp.Or(cmp.Compare(byText[x][0], byText[y][0]), cmp.Compare(x, y))
	})
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(byText[text], "\n"), text)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// CollectParts are the parts of the program in the repository at root, sorted by name.
func CollectParts(ctx context.Context, root string) ([]Part, error) {
	modules, err := linkedModules(ctx, root)
	if err != nil {
		return nil, err
	}
	packages, err := bundledPackages(root)
	if err != nil {
		return nil, err
	}
	parts := append(modules, packages...)
	slices.SortFunc(parts, func(x, y Part) int { return cmp.Compare(x.Name, y.Name) })
	return parts, nil
}

// ListedParts are the parts that a notice names, as Part.String has them.
func ListedParts(notice string) []string {
	var names []string
	list, _, _ := strings.Cut(notice, "\n===")
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "- "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// architectures are those that packages are made for.
var architectures = []string{"amd64", "arm64"}

// linkedModules are those that are linked into a program on some architecture, and Go's own
// library. That one is named without its version, which is the compiler's.
func linkedModules(ctx context.Context, root string) ([]Part, error) {
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

// bundledPackages are those that the front end imports, and what these depend on.
func bundledPackages(root string) ([]Part, error) {
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

func readLicences(dir string) ([]string, error) {
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
