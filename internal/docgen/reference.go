package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
)

const referenceMark = "<!-- Made by \"make docs\" from the types in internal/experiment and internal/topology. -->\n"

// replaceReference returns a function that replaces the sections of the page below the marker line: the keys of experiment
// files. root is as for schemas.
func replaceReference(root string) func(page []byte) ([]byte, error) {
	return func(page []byte) ([]byte, error) {
		head, _, ok := bytes.Cut(page, []byte(referenceMark))
		if !ok {
			return nil, fmt.Errorf("%w %s", ErrMark, strings.TrimSpace(referenceMark))
		}
		s, err := experimentSchema(root)
		if err != nil {
			return nil, err
		}
		r := &reference{schema: s, met: map[string]string{}}
		r.b.WriteString(string(head) + referenceMark + "\n")
		r.object("The whole file", "", s)
		for len(r.queue) > 0 {
			next := r.queue[0]
			r.queue = r.queue[1:]
			r.object("`"+next.path+"`", next.name, s.Definitions[next.name])
		}
		return []byte(strings.TrimRight(r.b.String(), "\n") + "\n"), nil
	}
}

// reference writes objects breadth first, each at its first occurrence.
type reference struct {
	schema *jsonschema.Schema
	b      strings.Builder
	met    map[string]string // path of the first occurrence of a type
	queue  []section
}

type section struct{ path, name string }

func (r *reference) object(title, name string, s *jsonschema.Schema) {
	fmt.Fprintf(&r.b, "## %s\n\n", title)
	short := ""
	description := s.Description
	if len(s.AnyOf) == 2 {
		for p := s.AnyOf[1].Properties.Oldest(); p != nil; p = p.Next() {
			if p.Value.Description == s.AnyOf[0].Description {
				short = p.Key
			}
		}
		s = s.AnyOf[1]
	}
	if name != "" && description != "" {
		fmt.Fprintf(&r.b, "%s\n\n", markdown(description))
	}
	if short != "" {
		fmt.Fprintf(&r.b, "Shorthand: a single value is its `%s`.\n\n", short)
	}
	r.b.WriteString("| key | value | default | |\n|---|---|---|---|\n")
	path := strings.Trim(title, "`")
	if name == "" {
		path = ""
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		key := p.Key
		fallback := "-"
		for _, required := range s.Required {
			if required == key {
				fallback = "**required**"
			}
		}
		if d := p.Value.Default; d != nil {
			fallback = fmt.Sprintf("`%v`", d)
		}
		fmt.Fprintf(&r.b, "| `%s` | %s | %s | %s |\n", key, r.value(p.Value, joinPath(path, key)), fallback, describeKey(key, p.Value))
	}
	r.b.WriteString("\n")
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value describes the value of a key.
func (r *reference) value(s *jsonschema.Schema, path string) string {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		if r.met[name] == "" {
			r.met[name] = path
			r.queue = append(r.queue, section{path, name})
		}
		return fmt.Sprintf("[%s](#%s)", keyName(name), anchor(r.met[name]))
	}
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", e)
		}
		return strings.Join(words, ", ")
	case s.Comments != "":
		return s.Comments
	case s.Type == "array":
		return "list of " + r.value(s.Items, path+"[]")
	case s.Type == "object":
		return "mapping"
	case s.Type == "boolean":
		return "true or false"
	case s.Type == "integer":
		return "whole number" + bounds(s)
	case s.Type == "number":
		return "number" + bounds(s)
	case s.Type == "string":
		return "text"
	}
	return "value"
}

// anchor returns the link target of a path.
func anchor(path string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(path))
}

// wordBoundary matches the end of a word in a Go name.
var wordBoundary = regexp.MustCompile("([a-z])([A-Z])")

// keyName returns the key of a type: "defaults" for DefaultsSpec, "link_down" for LinkDown.
func keyName(name string) string {
	if name == "Spec" {
		return "topology"
	}
	return strings.ToLower(wordBoundary.ReplaceAllString(strings.TrimSuffix(name, "Spec"), "${1}_$2"))
}

func bounds(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != "" && s.Maximum != "":
		return fmt.Sprintf(", %s to %s", s.Minimum, s.Maximum)
	case s.Minimum != "":
		return fmt.Sprintf(", at least %s", s.Minimum)
	case s.ExclusiveMinimum != "":
		return fmt.Sprintf(", above %s", s.ExclusiveMinimum)
	}
	return ""
}

// describeKey returns a description for a table row, without the key and "is".
func describeKey(key string, s *jsonschema.Schema) string {
	text := strings.ReplaceAll(strings.ReplaceAll(s.Description, "\n\n", " "), "|", `\|`)
	if rest, ok := strings.CutPrefix(text, key+" "); ok {
		word, after, _ := strings.Cut(rest, " ")
		switch {
		case word == "is", word == "are":
			text = after
		case strings.HasSuffix(word, "s"): // a verb
			text = rest
		}
	}
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if len(s.Examples) > 0 && s.Comments == "" {
		var list []string
		for _, e := range s.Examples {
			list = append(list, fmt.Sprintf("`%v`", e))
		}
		text += " For example " + strings.Join(list, ", ") + "."
	}
	return text
}

// markdown fences the indented paragraphs of a comment.
func markdown(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, "\t") {
			paragraphs[i] = "```\n" + strings.ReplaceAll(strings.TrimPrefix(p, "\t"), "\n\t", "\n") + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
