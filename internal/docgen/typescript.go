package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	dir := strings.TrimPrefix(pkg, module+"/")
	constants, err := readConstants(path.Join(g.root, dir))
	if err != nil {
		return nil, err
	}
	described, err := reflector(g.root, strings.TrimPrefix(dir, "internal/"))
	if err != nil {
		return nil, err
	}
	var body strings.Builder
	imports := map[string]map[string]bool{}
	types := slices.SortedFunc(slices.Values(g.types[pkg]), func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
	for _, t := range types {
		d := declaration{t: t, comments: described.CommentMap, constants: constants[t.Name()], imports: imports}
		d.write(&body)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "// Made by \"make docs\" from the types of %s.\n", dir)
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&head, "import type { %s } from './%s'\n", strings.Join(slices.Sorted(maps.Keys(imports[from])), ", "), from)
	}
	return []byte(head.String() + body.String()), nil
}

type declaration struct {
	t         reflect.Type
	comments  map[string]string          // of types and fields, by import path and name
	constants []string                   // values of the type
	imports   map[string]map[string]bool // names by file
}

func (d declaration) write(b *strings.Builder) {
	key := d.t.PkgPath() + "." + d.t.Name()
	b.WriteString("\n" + comment("", d.comments[key]))
	if d.t.Kind() == reflect.String {
		if len(d.constants) == 0 {
			fmt.Fprintf(b, "export type %s = string\n", d.t.Name())
			return
		}
		list := "every" + d.t.Name()
		fmt.Fprintf(b, "export type %s = (typeof %s)[number]\nexport const %s = ['%s'] as const\n", d.t.Name(), list, list,
			strings.Join(d.constants, "', '"))
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
		b.WriteString(comment("  ", replaceWord(d.comments[key+"."+f.Name], f.Name, name)))
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

// readConstants returns the values of a package's constants with an explicit type (Name Type = "text"), by type, in order.
// Reflection does not provide them.
func readConstants(dir string) (map[string][]string, error) {
	values := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("read constants of package: %w", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read constants of package: %w", err)
		}
		for n := range ast.Preorder(parsed) {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				continue
			}
			of, _ := spec.Type.(*ast.Ident)
			for _, v := range spec.Values {
				literal, ok := v.(*ast.BasicLit)
				if !ok || of == nil {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil {
					values[of.Name] = append(values[of.Name], text)
				}
			}
		}
	}
	return values, nil
}
