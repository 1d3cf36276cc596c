package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
)

// maxTrials bounds a plan: at one minute per trial, more would run for a day on a hundred machines.
const maxTrials = 100_000

// Matrix is the list of axes, in the order of the file.
type Matrix []Axis

// Axis is one parameter that varies.
type Axis struct {
	// Path is the path of the values in the file: "scale", "workload.threads".
	Path string
	// Values are scalars, or mappings if the path is a mapping ("workload").
	Values []any

	nodes []*strict.Node
}

// Settings are values by path, in the order of the file.
type Settings []Setting

// Setting is one path and its value.
type Setting struct {
	Path  string
	Value any
}

var (
	_ strict.Decoder = (*Matrix)(nil)
	_ strict.Decoder = (*Settings)(nil)
)

func (m *Matrix) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	if n.Kind != strict.Map {
		report(strict.Problem{Pos: n.Pos, Path: path, Message: fmt.Sprintf("%s: want a mapping of paths to lists, not %v", path, n.Kind),
			Hint: "write matrix: {scale: [0.2, 1.0]}"})
		return
	}
	*m = nil
	for _, e := range n.Entries {
		at := strict.Join(path, e.Key)
		switch {
		case e.Value.Kind == strict.List && len(e.Value.Items) == 0:
			report(strict.Problem{Pos: e.Value.Pos, Path: at, Message: at + ": axis is empty", Hint: "give values, or remove the axis"})
			continue
		case e.Value.Kind != strict.List:
			report(strict.Problem{Pos: e.Value.Pos, Path: at, Message: fmt.Sprintf("%s: want a list of values, not %v", at, e.Value.Kind),
				Hint: "write [VALUE, VALUE]"})
			continue
		}
		axis := Axis{Path: e.Key, nodes: e.Value.Items}
		seen := map[string]bool{}
		for _, item := range e.Value.Items {
			if text := fmt.Sprint(item.Value()); seen[text] {
				report(strict.Problem{Pos: item.Pos, Path: at, Message: fmt.Sprintf("%s: duplicate value %v", at, nodeLabel(item)),
					Hint: "raise repetitions to run a cell more often"})
			} else {
				seen[text] = true
			}
			axis.Values = append(axis.Values, item.Value())
		}
		*m = append(*m, axis)
	}
}

func (s *Settings) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	if n.Kind != strict.Map {
		report(strict.Problem{Pos: n.Pos, Path: path, Message: fmt.Sprintf("%s: want a mapping of paths to values, not %v", path, n.Kind),
			Hint: "write fast: {stop.time: 3s}"})
		return
	}
	*s = nil
	for _, e := range n.Entries {
		*s = append(*s, Setting{e.Key, e.Value.Value()})
	}
}

// MarshalJSON keeps the order of the axes.
func (m Matrix) MarshalJSON() ([]byte, error) {
	return marshalOrdered(len(m), func(i int) (string, any) { return m[i].Path, m[i].Values })
}

// MarshalJSON keeps the order of the settings.
func (s Settings) MarshalJSON() ([]byte, error) {
	return marshalOrdered(len(s), func(i int) (string, any) { return s[i].Path, s[i].Value })
}

func marshalOrdered(n int, entry func(int) (string, any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		key, value := entry(i)
		k, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// fixedKeys describe the whole run, and so cannot vary between its trials.
var fixedKeys = []string{"name", "description", "matrix", "repetitions", "retries", "parallel", "fast"}

// checkAxes checks the paths of the axes and the length of the plan.
func (l *loader) checkAxes(root *strict.Node, checkAxes Matrix) {
	trials := 1
	for _, a := range checkAxes {
		pos := root.Get("matrix").Pos
		for _, e := range root.Get("matrix").Entries {
			if e.Key == a.Path {
				pos = e.Pos
			}
		}
		head, _, _ := strings.Cut(a.Path, ".")
		if slices.Contains(fixedKeys, head) {
			l.problems = append(l.problems, strict.Problem{Pos: pos, Path: "matrix." + a.Path,
				Message: fmt.Sprintf("matrix: %s cannot vary, it applies to the whole run", head)})
			continue
		}
		l.addError(strict.Set(root.Clone(), Experiment{}, a.Path, pos, a.nodes[0]))
		if trials *= len(a.nodes); trials > maxTrials {
			l.problems = append(l.problems, strict.Problem{Pos: pos, Path: "matrix",
				Message: fmt.Sprintf("matrix: more than %d trials", maxTrials), Hint: "split the experiment"})
			return
		}
	}
}

// labels are the labels of the values. A mapping or a list is labelled by the names in it if these are distinct, else
// in full ("a threads=4").
func (a Axis) labels() []any {
	short, long := make([]any, len(a.nodes)), make([]any, len(a.nodes))
	seen := map[any]bool{}
	for i, n := range a.nodes {
		short[i], long[i] = shortLabel(n), nodeLabel(n)
		seen[short[i]] = true
	}
	if len(seen) == len(short) {
		return short
	}
	return long
}

// shortLabel labels a value by the names in it.
func shortLabel(n *strict.Node) any {
	switch name, own := n.Get("name"), n.Get("exec"); {
	case n.Kind == strict.Map && name != nil:
		return nodeLabel(name)
	case n.Kind == strict.Map && own != nil:
		return ShortLabel("exec:" + fmt.Sprint(nodeLabel(own)))
	case n.Kind == strict.List && len(n.Items) == 0:
		return "none"
	case n.Kind == strict.List:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = fmt.Sprint(shortLabel(item))
		}
		return strings.Join(parts, ",")
	}
	return nodeLabel(n)
}

// nodeLabel labels a value in full.
func nodeLabel(n *strict.Node) any {
	switch n.Kind {
	case strict.List:
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			parts[i] = fmt.Sprint(nodeLabel(item))
		}
		return strings.Join(parts, ",")
	case strict.Map:
		var parts []string
		for _, e := range n.Entries {
			if text := fmt.Sprint(nodeLabel(e.Value)); e.Key == "name" {
				parts = append(parts, text)
			} else {
				parts = append(parts, e.Key+"="+text)
			}
		}
		return strings.Join(parts, " ")
	}
	return n.Value()
}
