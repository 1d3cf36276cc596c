package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// source is what a package's files say that its compiled types do not.
type source struct {
	types     map[string]string   // comments, by name
	fields    map[string]string   // comments, by "Type.Field"
	constants map[string][]string // texts of constants, by the name of their type, in order
}

// readSource reads the files of a package.
func readSource(dir string) (*source, error) {
	s := &source{types: map[string]string{}, fields: map[string]string{}, constants: map[string][]string{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading a package's types: %w", err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading a package's types: %w", err)
		}
		for _, d := range parsed.Decls {
			if group, ok := d.(*ast.GenDecl); ok {
				s.take(group)
			}
		}
	}
	return s, nil
}

func (s *source) take(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			s.types[x.Name.Name] = firstOf(x.Doc, group.Doc)
			if fields, ok := x.Type.(*ast.StructType); ok {
				s.takeFields(x.Name.Name, fields)
			}
		case *ast.ValueSpec:
			s.takeConstants(x)
		}
	}
}

func (s *source) takeFields(of string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		for _, name := range f.Names {
			s.fields[of+"."+name.Name] = firstOf(f.Doc, f.Comment)
		}
	}
}

// takeConstants keeps those that say their type: Name Type = "text".
func (s *source) takeConstants(x *ast.ValueSpec) {
	of, ok := x.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, v := range x.Values {
		literal, ok := v.(*ast.BasicLit)
		if !ok {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			s.constants[of.Name] = append(s.constants[of.Name], text)
		}
	}
}

// firstOf is the first comment that there is.
func firstOf(comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		if c != nil {
			return strings.TrimSpace(c.Text())
		}
	}
	return ""
}
