package docgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"skerry/internal/event"
	"skerry/internal/report/compare"
	"skerry/internal/report/webdata"
	"skerry/internal/run/live"
	"skerry/internal/serve"
)

// frontEnd is where the front end has its types, below the repository's root.
const frontEnd = "web/src/go"

// told are the types that the front end is told in: a report's documents, what the dashboard's
// server answers, and the feed of a run. Whatever they hold comes along.
var told = []reflect.Type{
	reflect.TypeFor[webdata.Run](), reflect.TypeFor[webdata.Detail](),
	reflect.TypeFor[live.State](), reflect.TypeFor[live.Kind](), reflect.TypeFor[live.Refusal](),
	reflect.TypeFor[serve.Session](), reflect.TypeFor[serve.Entry](), reflect.TypeFor[serve.Detail](), reflect.TypeFor[compare.Report](),
	reflect.TypeFor[serve.Form](), reflect.TypeFor[serve.Checked](), reflect.TypeFor[serve.Saved](), reflect.TypeFor[serve.Job](), reflect.TypeFor[serve.Choice](), reflect.TypeFor[serve.Text](),
	reflect.TypeFor[event.Offer](),
}

// TypeScript is a file for each package that has a type which the front end is told in, and
// offers.ts, the events that its dashboard offers to fire. root is as for Schema.
func TypeScript(root string) (map[string][]byte, error) {
	g := &typescript{root: root, types: map[string][]reflect.Type{}}
	for _, t := range told {
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
		return nil, fmt.Errorf("writing the events on offer: %w", err)
	}
	files["offers.ts"] = fmt.Appendf(nil, "// Made by \"make docs\" from the kinds in internal/event.\nimport type { Offer } from './event'\n\nexport const offers: Offer[] = %s\n", offers)
	files["webdata.ts"] = fmt.Appendf(files["webdata.ts"], "\nexport const schema = '%s'\n", webdata.Schema)
	return files, nil
}

// typescript is the files in the making.
type typescript struct {
	root  string
	types map[string][]reflect.Type // by import path
}

// collect takes a type in, with those that it holds.
func (g *typescript) collect(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if t.Name() == "" {
			g.collect(t.Elem())
			return
		}
	}
	if !declared(t) || slices.Contains(g.types[t.PkgPath()], t) {
		return
	}
	g.types[t.PkgPath()] = append(g.types[t.PkgPath()], t)
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if name, _ := key(t.Field(i)); name != "" || t.Field(i).Anonymous {
				g.collect(t.Field(i).Type)
			}
		}
	}
}

// declared tells whether a type has a declaration of its own: structs, and names of texts, but
// not what writes itself as something plain.
func declared(t reflect.Type) bool {
	if t.PkgPath() == "" || !strings.HasPrefix(t.PkgPath(), module+"/") {
		return false
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.String
}

// key is what JSON calls a field, "" where it leaves it out; optional where it may be left out.
func key(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || name == "" {
		return "", false
	}
	return name, strings.Contains(options, "omit")
}

// file declares a package's types.
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
