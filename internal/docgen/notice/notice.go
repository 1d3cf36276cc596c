// Package notice collects the licences of what the skerry program holds: Go modules that are
// linked into it, and packages of npm that are bundled into its pages.
package notice

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

const head = `Skerry
Copyright 2026 The Skerry maintainers
Licensed under the Apache License, Version 2.0: see LICENSE.

The program holds the parts below, each under its own licence. Their source code is to be had from the Go
module proxy and the npm registry under these names and versions. "make notice" wrote this file.

`

// Write prints the notice of the repository at root: all parts, then every licence once, with
// the parts that are under it. Modules have to be in Go's module cache, and packages in
// web/node_modules.
func Write(ctx context.Context, w io.Writer, root string) error {
	parts, err := Parts(ctx, root)
	if err != nil {
		return err
	}
	byText := map[string][]string{}
	for _, p := range parts {
		texts, err := licences(p.dir)
		if err != nil {
			return fmt.Errorf("the licence of %s: %w", p, err)
		}
		for _, text := range texts {
			byText[text] = append(byText[text], p.String())
		}
	}
	var b strings.Builder
	b.WriteString(head)
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

// Parts are the parts of the program in the repository at root, sorted by name.
func Parts(ctx context.Context, root string) ([]Part, error) {
	modules, err := modules(ctx, root)
	if err != nil {
		return nil, err
	}
	packages, err := packages(root)
	if err != nil {
		return nil, err
	}
	parts := append(modules, packages...)
	slices.SortFunc(parts, func(x, y Part) int { return cmp.Compare(x.Name, y.Name) })
	return parts, nil
}

// Listed are the parts that a notice names, as Part.String has them.
func Listed(notice string) []string {
	var names []string
	list, _, _ := strings.Cut(notice, "\n===")
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "- "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
