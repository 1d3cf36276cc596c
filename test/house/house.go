// Package house reads the structure of the source tree: its packages, their imports, the lengths of files and
// functions, and the names and texts in them. Its tests compare the tree with docs/architecture.md, the glossary and
// the limits of CONTRIBUTING.md.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the prefix of this project's imports.
const module = "skerry/"

// roots are the folders that hold Go code of the product.
var roots = []string{"cmd", "docs", "internal", "systems", "web"}

// File is a Go file of the product, or a test next to it.
type File struct {
	// Name is relative to the checkout, with slashes.
	Name string
	Test bool
	AST  *ast.File
	Set  *token.FileSet
	// Text holds the lines without line ends.
	Text []string
}

// Package is a package of internal or systems.
type Package struct {
	// Path is relative to internal ("lab/overlay"), or begins with systems ("systems/hydra").
	Path string
	// Imports are the paths of this project's packages that its code imports. Tests are left out.
	Imports []string
	Files   []File
}

// Room returns the first element of the package's path.
func (p Package) Room() string {
	room, _, _ := strings.Cut(p.Path, "/")
	return room
}

// ReadFiles parses all Go files of a checkout outside test/, sorted by name.
func ReadFiles(checkout string) ([]File, error) {
	var files []File
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(checkout, root), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(file) != ".go":
				return nil
			}
			f, err := readFile(checkout, file)
			if err != nil {
				return err
			}
			files = append(files, f)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the Go files below %s: %w", root, err)
		}
	}
	return files, nil
}

func readFile(checkout, file string) (File, error) {
	name, err := filepath.Rel(checkout, file)
	if err != nil {
		return File{}, fmt.Errorf("placing %s: %w", file, err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return File{}, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("parsing: %w", err)
	}
	text := strings.Split(strings.TrimSuffix(string(source), "\n"), "\n")
	return File{Name: filepath.ToSlash(name), Test: strings.HasSuffix(name, "_test.go"), AST: parsed, Set: set, Text: text}, nil
}

// Packages groups the product files of internal and systems by package, sorted by path.
func Packages(files []File) []Package {
	found := map[string]*Package{}
	for _, f := range files {
		dir := path.Dir(f.Name)
		if f.Test || !strings.HasPrefix(dir, "internal/") && !strings.HasPrefix(dir, "systems/") {
			continue
		}
		p := shorten(dir)
		if found[p] == nil {
			found[p] = &Package{Path: p}
		}
		found[p].Files = append(found[p].Files, f)
		found[p].Imports = append(found[p].Imports, f.imports()...)
	}
	var all []Package
	for _, p := range found {
		slices.Sort(p.Imports)
		p.Imports = slices.Compact(p.Imports)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// imports returns the paths of this project's packages that the file imports.
func (f File) imports() []string {
	var paths []string
	for _, i := range f.AST.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if inside, ok := strings.CutPrefix(name, module); err == nil && ok {
			paths = append(paths, shorten(inside))
		}
	}
	return paths
}

// shorten removes the prefix that most packages share.
func shorten(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// Function is a function or method with its size.
type Function struct {
	Name  string // "Type.Method" for a method
	Lines int
	Depth int // of its deepest nested control statement
}

// Functions returns the file's functions in order.
func (f File) Functions() []Function {
	var all []Function
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		one := Function{Name: fn.Name.Name, Lines: f.line(fn.End()) - f.line(fn.Pos()) + 1}
		if t := receiver(fn); t != "" {
			one.Name = t + "." + one.Name
		}
		if fn.Body != nil {
			one.Depth = depth(fn.Body)
		}
		all = append(all, one)
	}
	return all
}

func (f File) line(at token.Pos) int { return f.Set.Position(at).Line }

// receiver returns the name of a method's type, or "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	name := "?"
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "?" {
			name = id.Name
		}
		return name == "?"
	})
	return name
}

// depth returns how deeply control statements are nested below n. An else-if chain is one level.
func depth(n ast.Node) int {
	deepest := 0
	ast.Inspect(n, func(child ast.Node) bool {
		var body ast.Node
		switch s := child.(type) {
		case *ast.IfStmt:
			for {
				deepest = max(deepest, 1+depth(s.Body))
				next, ok := s.Else.(*ast.IfStmt)
				if !ok {
					break
				}
				s = next
			}
			if s.Else == nil {
				return false
			}
			body = s.Else
		case *ast.ForStmt:
			body = s.Body
		case *ast.RangeStmt:
			body = s.Body
		case *ast.SwitchStmt:
			body = s.Body
		case *ast.TypeSwitchStmt:
			body = s.Body
		case *ast.SelectStmt:
			body = s.Body
		default:
			return true
		}
		deepest = max(deepest, 1+depth(body))
		return false
	})
	return deepest
}
