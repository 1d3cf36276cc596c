// Command docgen generates files from the code: the JSON Schemas, the reference of experiment
// files, a page for each command, tables in hand-written pages, the front end's types, and the
// licence notice. The files are committed; tests check that they are current.
package main

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/machine/inventory"
	"skerry/internal/record"
	"skerry/internal/run/choose"
)

const module = "skerry"

// Patterns of quantities. They accept more than package unit, whose errors are better than an editor's.
const (
	durationPattern  = `^(0|([0-9.]+ *(ns|us|µs|ms|s|m|h))+)$`
	bandwidthPattern = `^(unlimited|[0-9.]+ *([kKmMgGtT])?bit(/s)?)$`
	bytesPattern     = `^(0|[0-9.]+ *([kKmMgGtT]i?)?B)$`
	fractionPattern  = `^[0-9.]+ *%?$`
)

// schemas are the JSON Schemas by file. root is the repository relative to the working directory; the descriptions are the
// comments in its sources.
var schemas = map[string]func(root string) (*jsonschema.Schema, error){
	"experiment.schema.json": experimentSchema,
	"machines.schema.json":   machinesSchema,
	"needs.schema.json":      needsSchema,
	"summary.schema.json":    summarySchema,
}

func machinesSchema(root string) (*jsonschema.Schema, error) {
	r, err := reflector(root, "machine/inventory")
	if err != nil {
		return nil, err
	}
	s := r.Reflect(inventory.File{})
	s.Title = "Skerry machines"
	t := reflect.TypeFor[inventory.File]()
	describeTypes(s, t, collectStructs(t, map[string]reflect.Type{}))
	return s, nil
}

func needsSchema(root string) (*jsonschema.Schema, error) {
	return reflectWithEvents[choose.Needs](root, "Skerry needs", "run/choose", "event", "topology", "lab/overlay")
}

func reflector(root string, packages ...string) (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, ExpandedStruct: true, Anonymous: true, Mapper: mapper}
	// The library names packages by their path below the working directory.
	base := module + strings.Repeat("/_", strings.Count(filepath.ToSlash(root), ".."))
	for _, pkg := range packages {
		if err := r.AddGoComments(base, path.Join(root, "internal", pkg), jsonschema.WithFullComment()); err != nil {
			return nil, fmt.Errorf("read comments of package %s: %w", pkg, err)
		}
	}
	return r, nil
}

func experimentSchema(root string) (*jsonschema.Schema, error) {
	return reflectWithEvents[experiment.Experiment](root, "Skerry experiment", "experiment", "event", "topology", "lab/overlay", "database")
}

func reflectWithEvents[T any](root, title string, packages ...string) (*jsonschema.Schema, error) {
	r, err := reflector(root, packages...)
	if err != nil {
		return nil, err
	}
	t := reflect.TypeFor[T]()
	s := r.ReflectFromType(t)
	s.Title = title
	if d := s.Definitions[reflect.TypeFor[experiment.Database]().Name()]; d != nil {
		addDatabaseNames(d)
	}
	addOverlays(s, r)
	types := collectStructs(t, map[string]reflect.Type{})
	for _, k := range event.Kinds() {
		addKind(s, r, k)
		collectStructs(unwrapType(k.Type()), types)
	}
	describeTypes(s, t, types)
	return s, nil
}

func describeTypes(s *jsonschema.Schema, root reflect.Type, types map[string]reflect.Type) {
	for name, t := range types {
		d := s.Definitions[name]
		if d == nil { // the root itself, and what is embedded
			if t == root {
				renameKeys(s, t)
			}
			continue
		}
		renameKeys(d, t)
		s.Definitions[name] = allowShorthand(d, t)
	}
	normalize(s)
}

func addKind(s *jsonschema.Schema, r *jsonschema.Reflector, k event.Kind) {
	t := unwrapType(k.Type())
	of := r.ReflectFromType(t)
	for name, d := range of.Definitions {
		s.Definitions[name] = d
	}
	of.Definitions, of.Version = nil, ""
	s.Definitions[t.Name()] = of
	s.Definitions["Event"].Properties.Set(k.Name, &jsonschema.Schema{Ref: "#/$defs/" + t.Name(), Description: k.Name + " " + k.Summary})
}

func unwrapType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous {
		t = t.Field(0).Type
	}
	return t
}

func addDatabaseNames(database *jsonschema.Schema) {
	name, _ := database.Properties.Get("name")
	for _, a := range all.Registry() {
		name.Examples = append(name.Examples, a.Name)
	}
}

func mapper(t reflect.Type) *jsonschema.Schema {
	scalar := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	switch t {
	case reflect.TypeFor[unit.Duration]():
		return &jsonschema.Schema{Type: "string", Format: "duration", Pattern: durationPattern}
	case reflect.TypeFor[unit.Bandwidth]():
		return &jsonschema.Schema{Type: "string", Format: "bandwidth", Pattern: bandwidthPattern}
	case reflect.TypeFor[unit.Bytes]():
		return &jsonschema.Schema{Type: "string", Format: "size", Pattern: bytesPattern}
	case reflect.TypeFor[unit.Fraction]():
		return &jsonschema.Schema{Type: "string", Format: "share", Pattern: fractionPattern}
	case reflect.TypeFor[experiment.Parallel]():
		number := &jsonschema.Schema{Type: "integer", Minimum: "1", Maximum: json.Number(strconv.Itoa(experiment.MaxParallel))}
		return &jsonschema.Schema{Format: "auto or a number", AnyOf: []*jsonschema.Schema{number, {Type: "string", Enum: []any{"auto"}}}}
	case reflect.TypeFor[event.Names]():
		list := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
		return &jsonschema.Schema{Format: "name or list of names", AnyOf: []*jsonschema.Schema{{Type: "string"}, list}}
	case reflect.TypeFor[inventory.Ref]():
		list := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "object",
			Description: "A machine, as in a machines file (skerry schema machines)."}}
		return &jsonschema.Schema{Format: "path or list of machines", AnyOf: []*jsonschema.Schema{{Type: "string"}, list}}
	case reflect.TypeFor[experiment.Matrix]():
		one := uint64(1)
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "array", MinItems: &one}}
	case reflect.TypeFor[experiment.Settings]():
		return &jsonschema.Schema{Type: "object"}
	case reflect.TypeFor[map[string]any](), reflect.TypeFor[map[string]string]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: scalar}
	}
	return nil
}

func collectStructs(t reflect.Type, seen map[string]reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t.Name()] != nil {
		return seen
	}
	seen[t.Name()] = t
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			collectStructs(f.Type, seen)
		}
	}
	return seen
}

// renameKeys replaces Go field names in descriptions by keys: "SiteRTT is" becomes "site_rtt is".
func renameKeys(s *jsonschema.Schema, t reflect.Type) {
	name := keyName(t.Name())
	if !strings.Contains(name, "_") { // a key stays as it is written
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	s.Description = replaceWord(s.Description, t.Name(), name)
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if p, ok := s.Properties.Get(key); ok && key != "" {
			p.Description = replaceWord(p.Description, f.Name, key)
		}
	}
}

func replaceWord(text, old, word string) string {
	if rest, ok := strings.CutPrefix(text, old); ok && (rest == "" || strings.ContainsAny(rest[:1], " :,\n")) {
		return word + rest
	}
	return text
}

// allowShorthand also accepts a single value if the type has a shorthand.
func allowShorthand(d *jsonschema.Schema, t reflect.Type) *jsonschema.Schema {
	s, ok := reflect.Zero(t).Interface().(strict.Shorthander)
	if !ok {
		return d
	}
	single, _ := d.Properties.Get(s.Shorthand())
	description := d.Description
	d.Description = ""
	return &jsonschema.Schema{Description: description, AnyOf: []*jsonschema.Schema{
		{Type: single.Type, AnyOf: single.AnyOf, Enum: single.Enum, Examples: single.Examples, Description: single.Description}, d,
	}}
}

// normalize joins the lines of paragraphs, also accepts numbers as shares, and removes made-up
// formats, which editors warn about.
func normalize(s *jsonschema.Schema) {
	s.Description = reflow(s.Description)
	switch s.Format {
	case "share":
		s.AnyOf, s.Type, s.Pattern = []*jsonschema.Schema{{Type: "string", Pattern: s.Pattern}, {Type: "number"}}, "", ""
	case "duration":
		if s.Examples == nil && s.Default == nil {
			s.Examples = []any{"40ms", "2s"}
		}
	}
	if s.Format != "" {
		s.Comments, s.Format = s.Format, ""
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, x := range list {
			normalize(x)
		}
	}
	for _, x := range s.Definitions {
		normalize(x)
	}
	if s.Items != nil {
		normalize(s.Items)
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			normalize(p.Value)
		}
	}
}

func reflow(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, "\t") {
			paragraphs[i] = strings.ReplaceAll(p, "\n", " ")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// summarySchema accepts unknown fields, because a version may add some.
func summarySchema(root string) (*jsonschema.Schema, error) {
	r, err := reflector(root, "record")
	if err != nil {
		return nil, err
	}
	r.FieldNameTag, r.RequiredFromJSONSchemaTags, r.Mapper, r.AllowAdditionalProperties = "json", false, nil, true
	s := r.Reflect(record.Summary{})
	s.Title = "Skerry summary"
	for _, d := range s.Definitions {
		d.Description = firstSentence(d.Description)
	}
	return s, nil
}

func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i > 0 {
		return text[:i+1]
	}
	return text
}
