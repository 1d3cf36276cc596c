package strict

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxNodes bounds a document with its aliases expanded. A few nested aliases can otherwise expand to more nodes than fit
// into memory. The largest topologies (a thousand sites) are below the bound.
const maxNodes = 1 << 20

// maxDepth bounds how deeply lists and mappings nest.
const maxDepth = 64

// exponential matches numbers of YAML 1.2 that the library parses as text.
var exponential = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$`)

// Parse parses one YAML document. name identifies it in messages.
func Parse(name string, data []byte) (*Node, error) {
	src := NewSource(name, string(data))
	return parse(src, data, Pos{Source: src, Line: 1, Column: 1})
}

// ParseValue parses a value from outside a file, such as the right-hand side of --set. Its problems name name and no
// line.
func ParseValue(name, text string) (*Node, error) {
	if strings.TrimSpace(text) == "" {
		return &Node{Kind: Text, Pos: Pos{Source: &Source{Name: name}}}, nil
	}
	return parse(&Source{Name: name}, []byte(text), Pos{Source: &Source{Name: name}})
}

func parse(src *Source, data []byte, start Pos) (root *Node, err error) {
	c := &converter{src: src, anchors: map[string]*Node{}}
	defer func() {
		// The YAML library panics on a few malformed inputs.
		if r := recover(); r != nil {
			root, err = nil, Problems{{Pos: start, Message: fmt.Sprintf("invalid YAML: %v", r)}}
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntaxProblem(src, start, err)}
	}
	docs := file.Docs[:0:0]
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.CommentGroupType {
			docs = append(docs, d)
		}
	}
	switch {
	case len(docs) == 0:
		return nil, Problems{{Pos: start, Message: "the document is empty"}}
	case len(docs) > 1:
		return nil, Problems{{Pos: c.convert(docs[1].Body, 0).Pos, Message: "a second document begins here; only one is allowed"}}
	}
	root = c.convert(docs[0].Body, 0)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return root, nil
}

func syntaxProblem(src *Source, start Pos, err error) Problem {
	p := Problem{Pos: start, Message: "invalid YAML: " + err.Error(), Err: err}
	var y yaml.Error
	if errors.As(err, &y) {
		p.Message = "invalid YAML: " + y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil && src.lines != nil {
			p.Pos = Pos{Source: src, Line: t.Position.Line, Column: t.Position.Column}
		}
	}
	return p
}

// converter converts the library's syntax tree into Nodes.
type converter struct {
	src      *Source
	anchors  map[string]*Node
	nodes    int
	problems Problems
}

func (c *converter) pos(t *token.Token) Pos {
	if t == nil || t.Position == nil || c.src.lines == nil {
		return Pos{Source: c.src}
	}
	return Pos{Source: c.src, Line: t.Position.Line, Column: t.Position.Column}
}

func (c *converter) fail(t *token.Token, format string, args ...any) *Node {
	c.problems = append(c.problems, Problem{Pos: c.pos(t), Message: fmt.Sprintf(format, args...)})
	return &Node{Pos: c.pos(t)}
}

func (c *converter) convert(n ast.Node, depth int) *Node {
	if n == nil {
		return &Node{Pos: Pos{Source: c.src}}
	}
	t := n.GetToken()
	if c.nodes++; c.nodes == maxNodes || depth == maxDepth {
		return c.fail(t, "the document is too large or too deep")
	}
	if c.nodes > maxNodes {
		return &Node{}
	}
	node := &Node{Pos: c.pos(t)}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		node.Kind, node.Scalar = Text, n.Value
		if t.Type == token.StringType && exponential.MatchString(n.Value) {
			node.Kind = Number
		}
	case *ast.LiteralNode:
		node.Kind, node.Scalar = Text, n.Value.Value
	case *ast.IntegerNode:
		node.Kind, node.Scalar = Number, numberText(n.Value, t.Value)
	case *ast.FloatNode:
		node.Kind, node.Scalar = Number, numberText(n.Value, t.Value)
	case *ast.InfinityNode, *ast.NanNode:
		node.Kind, node.Scalar = Number, t.Value
	case *ast.BoolNode:
		node.Kind, node.Scalar = Bool, strconv.FormatBool(n.Value)
	case *ast.SequenceNode:
		node.Kind = List
		for _, v := range n.Values {
			node.Items = append(node.Items, c.convert(v, depth+1))
		}
	case *ast.MappingNode:
		if text, ok := colonText(n); ok {
			return &Node{Kind: Text, Scalar: text, Pos: c.pos(n.Values[0].Key.GetToken())}
		}
		c.mapping(node, n.Values, depth)
	case *ast.MappingValueNode:
		c.mapping(node, []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		node = c.convert(n.Value, depth)
		c.anchors[n.Name.GetToken().Value] = node
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		target, ok := c.anchors[name]
		if !ok {
			return c.fail(t, "no anchor &%s before this alias", name)
		}
		if c.nodes += target.size(); c.nodes >= maxNodes {
			return c.fail(t, "the document is too large")
		}
		return target.Clone()
	case *ast.TagNode:
		if node = c.convert(n.Value, depth); t.Value != "!!str" || !node.scalar() {
			return c.fail(t, "the YAML tag %s is not supported", t.Value)
		}
		node.Kind = Text
	default:
		return c.fail(t, "unexpected %s", n.Type().YAMLName())
	}
	return node
}

// colonText returns the text ring:16 of "{a: [ring:16]}". A colon without a following space belongs to a plain text, but
// within braces the library parses a pair.
func colonText(m *ast.MappingNode) (string, bool) {
	if len(m.Values) != 1 || m.Start == nil || m.Start.Type == token.MappingStartType {
		return "", false
	}
	n := m.Values[0]
	key, colon, value := n.Key.GetToken(), n.Start, n.Value.GetToken()
	if key.Type != token.StringType || colon == nil || value == nil {
		return "", false
	}
	if key.Position == nil || colon.Position == nil || value.Position == nil {
		return "", false
	}
	_, scalar := n.Value.(ast.ScalarNode)
	if !scalar || value.Position.Line != key.Position.Line || value.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	return key.Value + ":" + value.Value, true
}

func (c *converter) mapping(node *Node, values []*ast.MappingValueNode, depth int) {
	node.Kind = Map
	if len(values) > 0 {
		node.Pos = c.pos(values[0].Key.GetToken())
	}
	var merged []*Node
	for _, v := range values {
		t := v.Key.GetToken()
		value := c.convert(v.Value, depth+1)
		if v.Key.Type() == ast.MergeKeyType {
			merged = append(merged, c.merge(t, value)...)
			continue
		}
		if first := node.index(t.Value); first >= 0 {
			c.fail(t, "duplicate key %q (first in line %d)", t.Value, node.Entries[first].Pos.Line)
			continue
		}
		if value.Pos.Line == 0 {
			value.Pos = c.pos(t)
		}
		node.Entries = append(node.Entries, Entry{Key: t.Value, Pos: c.pos(t), Value: value})
	}
	for _, m := range merged {
		for _, e := range m.Entries {
			if node.index(e.Key) < 0 {
				node.Entries = append(node.Entries, e)
			}
		}
	}
}

// merge returns the mappings that a "<<" key merges.
func (c *converter) merge(t *token.Token, value *Node) []*Node {
	from := []*Node{value}
	if value.Kind == List {
		from = value.Items
	}
	for _, m := range from {
		if m.Kind != Map {
			c.fail(t, "<< merges mappings, not %v", m.Kind)
			return nil
		}
	}
	return from
}

func (n *Node) size() int {
	s := 1
	for _, item := range n.Items {
		s += item.size()
	}
	for _, e := range n.Entries {
		s += e.Value.size()
	}
	return s
}

// numberText returns a number in a form that strconv parses. It rewrites octal, hexadecimal and underscored numbers.
func numberText(v any, text string) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return text
}
