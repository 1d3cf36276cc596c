package custom

import (
	"fmt"
	"net"
	"strings"
	"text/template"

	"skerry/internal/machine/host"
)

// peer is a node as templates see it.
type peer struct {
	Node  string // its name
	Site  string
	Addr  string // its IPv4 address
	Dir   string // the database's own directory on it
	Index int    // its place among the nodes that formed the cluster, from 0; later ones follow
}

// templateData is what templates may name. The fields of the node at hand are named directly:
// {{.Addr}}, {{.Dir}}.
type templateData struct {
	peer
	// Nodes are those that formed the cluster. Members are the members, with one that is
	// joining or leaving; Others are those without the node at hand, Other the first of
	// them and First the first of all.
	Nodes, Members, Others []peer
	First, Other           peer
	// Options are the definition's, with what the experiment set.
	Options map[string]any
	// Programs are the paths of the installation's programs by name, Root is the folder
	// of an installation in the cache or of --from.
	Programs map[string]string
	Root     string
	// File is the folder of the definition's file.
	File string
}

// functions of templates.
var functions = template.FuncMap{
	// addrs joins the addresses of nodes.
	"addrs": func(peers []peer, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, p.Addr)
		}
		return strings.Join(list, separator)
	},
	// hostports is addrs with a port after each.
	"hostports": func(peers []peer, port any, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, net.JoinHostPort(p.Addr, fmt.Sprint(port)))
		}
		return strings.Join(list, separator)
	},
	"names": func(peers []peer, separator string) string {
		var list []string
		for _, p := range peers {
			list = append(list, p.Node)
		}
		return strings.Join(list, separator)
	},
}

// render fills a template in.
func render(text string, d templateData) (string, error) {
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

// checkTemplate renders a template for a cluster that could be.
func (d Definition) checkTemplate(text string) error {
	var peers []peer
	for i := range 3 {
		peers = append(peers, peer{Node: fmt.Sprint("n", i+1), Site: "s1", Addr: fmt.Sprint("10.0.0.", i+1), Dir: "/d", Index: i})
	}
	programs := make(map[string]string)
	for _, p := range d.Install.Programs {
		programs[p] = "/bin/" + p
	}
	_, err := render(text, templateData{peer: peers[1], Nodes: peers, Members: peers, Others: peers[:1], First: peers[0], Other: peers[0],
		Options: d.Options, Programs: programs, Root: "/root", File: d.dir})
	return err
}

func (c *cluster) peerOf(h host.Host) peer {
	index := len(c.Env.Nodes)
	for i, n := range c.Env.Nodes {
		if n.Name() == h.Name() {
			index = i
		}
	}
	return peer{Node: h.Name(), Site: h.Site(), Addr: h.Addr(), Dir: c.dir(h), Index: index}
}

// templateData is what a template sees on a node, with these members.
func (c *cluster) templateData(at host.Host, members []host.Host) templateData {
	d := templateData{peer: c.peerOf(at), Options: c.options, Programs: c.Env.Installation.Programs, Root: c.Env.Installation.Dir, File: c.def.dir}
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
