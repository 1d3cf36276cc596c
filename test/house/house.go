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

// module is what this project's imports begin with.
const module = "skerry/internal/"

// Package is a package below internal.
type Package struct {
	// Path is relative to internal ("lab/overlay").
	Path string
	// Imports are the paths of those below internal that its code, tests apart, imports.
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

// Read reads the packages below a folder of Go code, sorted by path.
func Read(root string) ([]Package, error) {
	found := map[string]*Package{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
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
		dir = filepath.ToSlash(dir)
		if found[dir] == nil {
			found[dir] = &Package{Path: dir}
		}
		return found[dir].add(file)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the packages below %s: %w", root, err)
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
			p.Imports = append(p.Imports, inside)
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
