package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/event"
	"skerry/internal/report/compare"
	"skerry/internal/report/webdata"
	"skerry/internal/run/live"
	"skerry/internal/serve"
)

const frontEndDir = "web/src/go"

// frontEndTypes are the JSON documents for browsers: reports, answers of the dashboard's server,
// and the feed of a run. The types of their fields are included.
var frontEndTypes = []reflect.Type{
	reflect.TypeFor[webdata.Run](), reflect.TypeFor[webdata.Detail](),
	reflect.TypeFor[live.State](), reflect.TypeFor[live.Kind](), reflect.TypeFor[live.Refusal](),
	reflect.TypeFor[serve.Session](), reflect.TypeFor[serve.Entry](), reflect.TypeFor[serve.Detail](), reflect.TypeFor[compare.Report](),
	reflect.TypeFor[serve.Form](), reflect.TypeFor[serve.Checked](), reflect.TypeFor[serve.Saved](), reflect.TypeFor[serve.Job](),
	reflect.TypeFor[serve.Choice](), reflect.TypeFor[serve.Text](),
	reflect.TypeFor[event.Offer](),
}

// TypeScript returns a file for each package that declares a front-end type, and offers.ts with the
// events that the dashboard offers. root is as for schemas.
func TypeScript(root string) (map[string][]byte, error) {
	g := &typescript{root: root, types: map[string][]reflect.Type{}}
	for _, t := range frontEndTypes {
		g.collect(t)
	}
	files := map[string][]byte{}
	for pkg := range g.types {
		file, err := g.file(pkg)
		if err != nil {
			return nil, err
		}
		files[path.Base(pkg)+".ts"] = file
	}
	offers, err := json.MarshalIndent(event.Offers(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode offered events: %w", err)
	}
	files["offers.ts"] = fmt.Appendf(nil, "// Made by \"make docs\" from the kinds in internal/event.\nimport type { Offer } from "+
		"'./event'\n\nexport const offers: Offer[] = %s\n", offers)
	files["webdata.ts"] = fmt.Appendf(files["webdata.ts"], "\nexport const schema = '%s'\n", webdata.Schema)
	return files, nil
}

type typescript struct {
	root  string
	types map[string][]reflect.Type // by import path
}

func (g *typescript) collect(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if t.Name() == "" {
			g.collect(t.Elem())
			return
		}
	}
	if !isDeclared(t) || slices.Contains(g.types[t.PkgPath()], t) {
		return
	}
	g.types[t.PkgPath()] = append(g.types[t.PkgPath()], t)
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if name, _ := jsonKey(t.Field(i)); name != "" || t.Field(i).Anonymous {
				g.collect(t.Field(i).Type)
			}
		}
	}
}

func isDeclared(t reflect.Type) bool {
	if t.PkgPath() == "" || !strings.HasPrefix(t.PkgPath(), module+"/") {
		return false
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.String
}

// jsonKey returns the JSON name of a field, "" if it is not encoded, and whether it may be omitted.
func jsonKey(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || name == "" {
		return "", false
	}
	return name, strings.Contains(options, "omit")
}

func (g *typescript) file(pkg string) ([]byte, error) {
	src, err := readSource(path.Join(g.root, strings.TrimPrefix(pkg, module+"/")))
	if err != nil {
		return nil, err
	}
	var body strings.Builder
	imports := map[string]map[string]bool{}
	types := slices.SortedFunc(slices.Values(g.types[pkg]), func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
	for _, t := range types {
		d := declaration{t: t, src: src, imports: imports}
		d.write(&body)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "// Made by \"make docs\" from the types of %s.\n", strings.TrimPrefix(pkg, module+"/"))
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&head, "import type { %s } from './%s'\n", strings.Join(slices.Sorted(maps.Keys(imports[from])), ", "), from)
	}
	return []byte(head.String() + body.String()), nil
}

type declaration struct {
	t       reflect.Type
	src     *source
	imports map[string]map[string]bool // names by file
}

func (d declaration) write(b *strings.Builder) {
	b.WriteString("\n" + comment("", d.src.types[d.t.Name()]))
	if d.t.Kind() == reflect.String {
		values := d.src.constants[d.t.Name()]
		if len(values) == 0 {
			fmt.Fprintf(b, "export type %s = string\n", d.t.Name())
			return
		}
		list := "every" + d.t.Name()
		fmt.Fprintf(b, "export type %s = (typeof %s)[number]\nexport const %s = ['%s'] as const\n", d.t.Name(), list, list,
			strings.Join(values, "', '"))
		return
	}
	fmt.Fprintf(b, "export interface %s", d.t.Name())
	for i := range d.t.NumField() {
		if f := d.t.Field(i); f.Anonymous && f.Tag.Get("json") == "" {
			fmt.Fprintf(b, " extends %s", d.value(f.Type))
		}
	}
	b.WriteString(" {\n")
	for i := range d.t.NumField() {
		f := d.t.Field(i)
		name, optional := jsonKey(f)
		if name == "" {
			continue
		}
		b.WriteString(comment("  ", replaceWord(d.src.fields[d.t.Name()+"."+f.Name], f.Name, name)))
		value := d.value(f.Type)
		if f.Type.Kind() == reflect.Pointer && !optional {
			value += " | null"
		}
		if optional {
			name += "?"
		}
		fmt.Fprintf(b, "  %s: %s\n", name, value)
	}
	b.WriteString("}\n")
}

// value returns a type expression. Lists are never null; the encoder guarantees that.
func (d declaration) value(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time](), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return "unknown"
	case isDeclared(t):
		if t.PkgPath() != d.t.PkgPath() {
			file := path.Base(t.PkgPath())
			if d.imports[file] == nil {
				d.imports[file] = map[string]bool{}
			}
			d.imports[file][t.Name()] = true
		}
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.value(t.Elem())
	case reflect.Slice:
		return d.value(t.Elem()) + "[]"
	case reflect.Array:
		return "[" + strings.TrimSuffix(strings.Repeat(d.value(t.Elem())+", ", t.Len()), ", ") + "]"
	case reflect.Map:
		return "Record<string, " + d.value(t.Elem()) + ">"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	}
	return "number"
}

func comment(indent, text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		return indent + "/** " + text + " */\n"
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(indent+" * "+l, " ")
	}
	return indent + "/**\n" + strings.Join(lines, "\n") + "\n" + indent + " */\n"
}

// source holds comments and constants of a package, which reflection does not provide.
type source struct {
	types     map[string]string   // comments, by name
	fields    map[string]string   // comments, by "Type.Field"
	constants map[string][]string // values of constants, by type, in order
}

func readSource(dir string) (*source, error) {
	s := &source{types: map[string]string{}, fields: map[string]string{}, constants: map[string][]string{}}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read types of package: %w", err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read types of package: %w", err)
		}
		for _, d := range parsed.Decls {
			if group, ok := d.(*ast.GenDecl); ok {
				s.addGroup(group)
			}
		}
	}
	return s, nil
}

func (s *source) addGroup(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		switch x := spec.(type) {
		case *ast.TypeSpec:
			s.types[x.Name.Name] = firstComment(x.Doc, group.Doc)
			if fields, ok := x.Type.(*ast.StructType); ok {
				s.addFields(x.Name.Name, fields)
			}
		case *ast.ValueSpec:
			s.addConstants(x)
		}
	}
}

func (s *source) addFields(of string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		for _, name := range f.Names {
			s.fields[of+"."+name.Name] = firstComment(f.Doc, f.Comment)
		}
	}
}

// addConstants adds constants with an explicit type: Name Type = "text".
func (s *source) addConstants(x *ast.ValueSpec) {
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

func firstComment(comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		if c != nil {
			return strings.TrimSpace(c.Text())
		}
	}
	return ""
}
