package inventory

import (
	"encoding/json"
	"fmt"

	"skerry/internal/base/strict"
)

// Given is how another file says which machines it is about: a machines file, or the machines
// themselves as such a file lists them. The zero value says nothing.
type Given struct {
	// File is the path of a machines file, relative to the file that names it.
	File string
	// List are the machines; nil where File names them.
	List []Machine
}

var _ strict.Decoder = (*Given)(nil)

// Any tells whether machines are given.
func (g Given) Any() bool { return g.File != "" || g.List != nil }

// DecodeNode implements strict.Decoder: a single value is a path.
func (g *Given) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	switch n.Kind {
	case strict.Text:
		*g = Given{File: n.Scalar}
	case strict.List:
		*g = Given{List: []Machine{}}
		for _, p := range strict.Decode(n, &g.List, path) {
			report(p)
		}
	default:
		report(strict.Problem{Pos: n.Pos, Path: path, Message: fmt.Sprintf("%s: want the path of a machines file or a list of machines, not %v", path, n.Kind),
			Hint: "write machines: machines.yaml, or machines: [{name: rack-1, ssh: lab@10.0.0.11}]"})
	}
}

// Check finds what is wrong with machines that are listed at a path of a file.
func (g Given) Check(path string) strict.Problems { return File{Machines: g.List}.check(path) }

// MarshalJSON writes what the file says.
func (g Given) MarshalJSON() ([]byte, error) {
	if g.List != nil {
		return json.Marshal(g.List)
	}
	return json.Marshal(g.File)
}

// Read is the machines that are given in a file, whose place paths are relative to.
func (g Given) Read(in string) (File, error) {
	if g.List == nil {
		return Load(beside(in, g.File))
	}
	f := File{Machines: g.List}
	f.anchor(in)
	return f, nil
}
