package main

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

type noticePart struct {
	Name, Version string
	dir           string
}

func (p noticePart) String() string { return strings.TrimSpace(p.Name + " " + p.Version) }

const noticeHead = `Skerry
Copyright 2026 The Skerry maintainers
Licensed under the Apache License, Version 2.0: see LICENSE.

The program contains the parts below, each under its own licence. Their source code is available from the Go
module proxy and the npm registry under these names and versions. "make notice" wrote this file.

`

// WriteNotice prints the licences of the programs in the repository at root: Go modules linked into
// them, and npm packages bundled into their pages. Every licence text is printed once. The modules
// must be in Go's module cache, the packages in web/node_modules.
func WriteNotice(ctx context.Context, w io.Writer, root string) error {
	parts, err := collectParts(ctx, root)
	if err != nil {
		return err
	}
	byText := map[string][]string{}
	for _, p := range parts {
		texts, err := readLicences(p.dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", p, err)
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

func collectParts(ctx context.Context, root string) ([]noticePart, error) {
	modules, err := linkedModules(ctx, root)
	if err != nil {
		return nil, err
	}
	packages, err := bundledPackages(root)
	if err != nil {
		return nil, err
	}
	parts := append(modules, packages...)
	slices.SortFunc(parts, func(x, y noticePart) int { return cmp.Compare(x.Name, y.Name) })
	return parts, nil
}

var architectures = []string{"amd64", "arm64"}

// linkedModules returns the modules linked into a program on any architecture, and Go's standard
// library without its version, which is the compiler's.
func linkedModules(ctx context.Context, root string) ([]noticePart, error) {
	library, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find GOROOT: %w", err)
	}
	parts := []noticePart{{Name: "Go", dir: strings.TrimSpace(string(library))}}
	for _, arch := range architectures {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", "./cmd/...")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list modules: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 3 || f[1] == "" {
				continue // Skerry itself, which has no version
			}
			if p := (noticePart{f[0], f[1], f[2]}); !slices.Contains(parts, p) {
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

var imported = regexp.MustCompile(`(?m)^(?:import|export)[^'"]*['"]((?:@[\w-]+/)?[\w-]+)[^'"]*['"]`)

func bundledPackages(root string) ([]noticePart, error) {
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
		return nil, fmt.Errorf("read front-end imports: %w", err)
	}
	var parts []noticePart
	for i := 0; i < len(names); i++ { // names grows
		at := "node_modules/" + names[i]
		p, ok := lock[at]
		if !ok || slices.Contains(names[:i], names[i]) {
			continue // a module of Node.js, or a duplicate
		}
		parts = append(parts, noticePart{names[i], p.Version, filepath.Join(root, "web", at)})
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
		return nil, fmt.Errorf("read front-end lock file: %w", err)
	}
	var lock struct {
		Packages map[string]locked `json:"packages"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return lock.Packages, nil
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

var errNoLicence = errors.New("no licence file")

func readLicences(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var texts []string
	for _, f := range files {
		if f.IsDir() || !licence.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(texts) == 0 {
		return nil, errNoLicence
	}
	return texts, nil
}
