package docgen

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"
)

// declaration is one type being written.
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
		fmt.Fprintf(b, "export type %s = (typeof %s)[number]\nexport const %s = ['%s'] as const\n", d.t.Name(), list, list, strings.Join(values, "', '"))
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
		name, optional := key(f)
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

// value is a type where it is used. A list is never null: who sends one sees to that.
func (d declaration) value(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time](), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return "unknown"
	case declared(t):
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

// comment writes a comment of Go as one of TypeScript.
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
