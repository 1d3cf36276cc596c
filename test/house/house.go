// Package house reads the structure of the source tree: which packages there are, what they
// import, and how long their files and functions are. Its tests hold docs/architecture.md
// against that.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the prefix of this project's imports.
const module = "skerry/"

// Package is a package below internal or systems.
type Package struct {
	// Path is relative to internal ("lab/overlay"), or begins with systems ("systems/hydra").
	Path string
	// Imports are the paths of this project's packages that its code imports. Tests are left out.
	Imports []string
	// Files and Functions are the longest first.
	Files, Functions []Length
}

// Length is how many lines something has.
type Length struct {
	Name  string
	Lines int
}

// Room is the first part of a package's path.
func (p Package) Room() string {
	room, _, _ := strings.Cut(p.Path, "/")
	return room
}

// Read reads the packages below internal and systems of a checkout, sorted by path.
func Read(root string) ([]Package, error) {
	found := map[string]*Package{}
	for _, top := range []string{"internal", "systems"} {
		if err := readBelow(root, top, found); err != nil {
			return nil, err
		}
	}
	var all []Package
	for _, p := range found {
		slices.Sort(p.Imports)
		p.Imports = slices.Compact(p.Imports)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// readBelow adds the packages below one folder of a checkout to found.
func readBelow(root, top string, found map[string]*Package) error {
	err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return fmt.Errorf("placing %s: %w", file, err)
		}
		dir = pathOf(filepath.ToSlash(dir))
		if found[dir] == nil {
			found[dir] = &Package{Path: dir}
		}
		return found[dir].add(file)
	})
	if err != nil {
		return fmt.Errorf("reading the packages below %s: %w", top, err)
	}
	return nil
}

// pathOf returns a folder's path without the prefix that most packages share.
func pathOf(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// add reads one file.
func (p *Package) add(file string) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	for _, i := range parsed.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return fmt.Errorf("parsing an import of %s: %w", file, err)
		}
		if inside, ok := strings.CutPrefix(name, module); ok {
			p.Imports = append(p.Imports, pathOf(inside))
		}
	}
	line := func(at token.Pos) int { return set.Position(at).Line }
	p.Files = append(p.Files, Length{path.Join(p.Path, filepath.Base(file)), line(parsed.FileEnd)})
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			name := path.Join(p.Path, filepath.Base(file)) + ": " + f.Name.Name
			p.Functions = append(p.Functions, Length{name, line(f.End()) - line(f.Pos()) + 1})
		}
	}
	return nil
}
