package custom

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"skerry/internal/base/strict"
	"skerry/internal/machine/host"
)

// Peer is a node in templates.
type Peer struct {
	Node  string // its name
	Site  string
	Addr  string // its IPv4 address
	Dir   string // the database's own directory on it
	Index int    // its place among the nodes that formed the cluster, from 0; later ones follow

	port string // of a server that Skerry did not start: it replaces the port in hostports
}

// templateData is what templates may name. Fields of the current node are named directly: {{.Addr}}, {{.Dir}}.
type templateData struct {
	Peer
	// Nodes are those that formed the cluster. Members are the members, with one that is
	// joining or leaving; Others are those without the node at hand, Other the first of
	// them and First the first of all.
	Nodes, Members, Others []Peer
	First, Other           Peer
	// Options are the definition's, with what the experiment set.
	Options map[string]any
	// Programs are the installation's programs by name, Root its folder.
	Programs map[string]string
	Root     string
	// File is the folder of the definition's file.
	File string
}

var functions = template.FuncMap{
	// addrs joins the addresses of nodes.
	"addrs": func(peers []Peer, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, p.Addr)
		}
		return strings.Join(list, separator)
	},
	// hostports is addrs with a port after each.
	"hostports": func(peers []Peer, port any, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, net.JoinHostPort(p.Addr, cmp.Or(p.port, fmt.Sprint(port))))
		}
		return strings.Join(list, separator)
	},
	"names": func(peers []Peer, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, p.Node)
		}
		return strings.Join(list, separator)
	},
}

// Render fills in a template with data. An error names the faulty part.
func Render(text string, data any) (string, error) {
	out, err := render(text, data)
	if err != nil {
		return "", explainTemplateError(text, err)
	}
	return out, nil
}

func render(text string, d any) (string, error) {
	t, err := template.New("command").Funcs(functions).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return "", fmt.Errorf("%w: %w", ErrDefinition, err)
	}
	return b.String(), nil
}

func (d Definition) checkTemplate(text string) error {
	var peers []Peer
	for i := range 3 {
		peers = append(peers, Peer{Node: fmt.Sprint("n", i+1), Site: "s1", Addr: fmt.Sprint("10.0.0.", i+1), Dir: "/d", Index: i})
	}
	programs := make(map[string]string)
	for _, p := range d.Install.Programs {
		programs[p] = "/bin/" + p
	}
	_, err := render(text, templateData{Peer: peers[1], Nodes: peers, Members: peers, Others: peers[:1], First: peers[0], Other: peers[0],
		Options: d.Options, Programs: programs, Root: "/root", File: d.dir})
	return err
}

func (c *cluster) peerOf(h host.Host) Peer {
	index := len(c.Env.Nodes)
	for i, n := range c.Env.Nodes {
		if n.Name() == h.Name() {
			index = i
		}
	}
	return Peer{Node: h.Name(), Site: h.Site(), Addr: h.Addr(), Dir: c.dir(h), Index: index}
}

// templateData is what a template sees on a node, with these members.
func (c *cluster) templateData(at host.Host, members []host.Host) templateData {
	d := templateData{Peer: c.peerOf(at), Options: c.options, Programs: c.Env.Installation.Programs, Root: c.Env.Installation.Dir, File: c.def.dir}
	for _, n := range c.Env.Nodes {
		d.Nodes = append(d.Nodes, c.peerOf(n))
	}
	for _, m := range members {
		p := c.peerOf(m)
		d.Members = append(d.Members, p)
		if m.Name() != at.Name() {
			d.Others = append(d.Others, p)
		}
	}
	if len(d.Members) > 0 {
		d.First = d.Members[0]
	}
	if len(d.Others) > 0 {
		d.Other = d.Others[0]
	}
	return d
}

type templateError struct {
	message string
	part    string // the part that is wrong, "" where that is all of it
	err     error
}

func (e templateError) Error() string { return e.message }
func (e templateError) Unwrap() error { return e.err }

// What package text/template says of a name that is not there, and of anything else.
var (
	noField    = regexp.MustCompile(`at <([^>]*)>: can't evaluate field (\w+)`)
	noEntry    = regexp.MustCompile(`at <([^>]*)>: map has no entry for key "([^"]*)"`)
	noFunction = regexp.MustCompile(`function "([^"]*)" not defined`)
	wrongCount = regexp.MustCompile(`at <([^>]*)>: wrong number of args for (\w+)`)
	other      = regexp.MustCompile(`^template: command:\d+(?::\d+)?: (?:executing "command" at <([^>]*)>: )?(.*)$`)
)

var functionExamples = map[string]string{
	"addrs": `{{addrs .Members ","}}`, "names": `{{names .Members ","}}`, "hostports": `{{hostports .Members 6379 ","}}`,
}

func explainTemplateError(template string, err error) error {
	text := err.Error()
	if i := strings.Index(text, "template: "); i >= 0 {
		text = text[i:]
	}
	if m := noField.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("{{%s}}: there is no .%s", m[1], m[2]), m[1], err}
	}
	if m := noEntry.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("{{%s}}: there is no %q; options are listed under options:, programs under install:",
			m[1], m[2]), m[1], err}
	}
	if m := noFunction.FindStringSubmatch(text); m != nil {
		return templateError{fmt.Sprintf("there is no function %s; there are %s", m[1], strings.Join(slices.Sorted(maps.Keys(functionExamples)), ", ")), m[1], err}
	}
	if m := wrongCount.FindStringSubmatch(text); m != nil && functionExamples[m[2]] != "" {
		return templateError{fmt.Sprintf("%s is written as %s", m[2], functionExamples[m[2]]), m[2], err}
	}
	if strings.HasSuffix(text, "unexpected EOF") {
		return templateError{"an {{if}}, {{with}} or {{range}} has no {{end}}", "{{", err}
	}
	m := other.FindStringSubmatch(text)
	switch action := findBadAction(template); {
	case m == nil:
		return err
	case m[1] == "" && action != "":
		return templateError{fmt.Sprintf("%s cannot be read: %s", action, m[2]), action, err}
	default:
		return templateError{m[2], m[1], err}
	}
}

// findBadAction returns the first {{...}} that does not parse, "" if all parse.
func findBadAction(text string) string {
	for end := 0; end < len(text); {
		next := strings.Index(text[end:], "}}")
		if next < 0 {
			end = len(text)
		} else {
			end += next + len("}}")
		}
		_, err := template.New("command").Funcs(functions).Parse(text[:end])
		start := strings.LastIndex(text[:end], "{{")
		if err == nil || start < 0 || strings.HasSuffix(err.Error(), "unexpected EOF") {
			continue
		}
		action, _, _ := strings.Cut(text[start:end], "\n")
		return action
	}
	return ""
}

// templatePos returns the position of the faulty part of a template, or of the whole value.
func templatePos(n *strict.Node, err error) strict.Pos {
	var wrong templateError
	if !errors.As(err, &wrong) || wrong.part == "" {
		return n.Pos
	}
	return n.Pos.Find(wrong.part)
}
