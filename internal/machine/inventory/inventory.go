// Package inventory is the machines file: which machines a person can reach, how, and what of
// them may be used. Trials are measured on them whole, or labs spread over them.
package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
)

// File is a machines file.
type File struct {
	// Machines are those that may be used.
	Machines []Entry `yaml:"machines" json:"machines" jsonschema:"required,minItems=1"`
}

// Entry is one machine, or those of a Kubernetes cluster. How it is reached is one of ssh,
// kubernetes and command.
type Entry struct {
	// Name is how messages, plans and reports call the machine. It may be left out under
	// kubernetes, where machines are called as the cluster calls them.
	Name string `yaml:"name" json:"name,omitempty" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	// SSH reaches it by the system's ssh: ssh_config, agent, keys, jump hosts and known_hosts are
	// as OpenSSH has them. ssh never asks for a password.
	SSH *SSH `yaml:"ssh" json:"ssh,omitempty"`
	// Kubernetes reaches the pods of a cluster, one a machine, by kubectl.
	Kubernetes *Kubernetes `yaml:"kubernetes" json:"kubernetes,omitempty"`
	// Command is a program with its arguments that ends up in `skerry agent machine` there, and
	// carries its standard input and output.
	Command []string `yaml:"command" json:"command,omitempty" jsonschema:"minItems=1"`
	// Sudo has skerry run as root by `sudo -n` if ssh logs in as another user.
	Sudo bool `yaml:"sudo" json:"sudo,omitempty"`
	// Site is the site that the machine stands for, where it does.
	Site string `yaml:"site" json:"site,omitempty"`
	// Addr is the IP address that the other machines reach this one by. Left out, it is the host
	// of ssh where that is an address, else the source address of the machine's packets.
	Addr string `yaml:"addr" json:"addr,omitempty"`
	// Cores are how many processors may be used; all, where it is left out.
	Cores float64 `yaml:"cores" json:"cores,omitempty" jsonschema:"minimum=0"`
	// Memory is how much may be used; all, where it is left out.
	Memory unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Whole has the machine itself be a node of a lab, of one at a time: with its own network, disk and kernel,
	// and no limits.
	Whole bool `yaml:"whole" json:"whole,omitempty"`

	pod string // of an expanded one
}

// Alternatives: a machine is reached one way.
func (Entry) Alternatives() [][]string { return [][]string{{"ssh", "kubernetes", "command"}} }

// SSH is how the system's ssh is told to reach a machine.
type SSH struct {
	// Host is a host, USER@HOST, or a name of ssh_config.
	Host string `yaml:"host" json:"host" jsonschema:"required,pattern=^[^-\\s][^\\s]*$"`
	// User to log in as.
	User string `yaml:"user" json:"user,omitempty" jsonschema:"pattern=^[^-\\s][^\\s]*$"`
	// Port of the server; ssh's own default where it is left out.
	Port int `yaml:"port" json:"port,omitempty" jsonschema:"minimum=1,maximum=65535"`
	// Identity is the file of a key; ~ is the home folder, other paths are relative to the
	// machines file.
	Identity string `yaml:"identity" json:"identity,omitempty"`
	// Config is a file of ssh's settings instead of the user's, found as identity is.
	Config string `yaml:"config" json:"config,omitempty"`
	// Options are further settings, as ssh's -o takes them.
	Options []string `yaml:"options" json:"options,omitempty"`
}

// Shorthand: "ssh: lab@10.0.0.11" is "ssh: {host: lab@10.0.0.11}".
func (SSH) Shorthand() string { return "host" }

// Kubernetes is how kubectl is told to reach pods, one on each machine, as a DaemonSet has them.
type Kubernetes struct {
	// Context of kubectl's configuration; the current one where it is left out.
	Context string `yaml:"context" json:"context,omitempty" jsonschema:"pattern=^[^-]"`
	// Namespace of the pods; the context's own where it is left out.
	Namespace string `yaml:"namespace" json:"namespace,omitempty" jsonschema:"pattern=^[^-]"`
	// Selector of the pods, by their labels.
	Selector string `yaml:"selector" json:"selector" jsonschema:"required,pattern=^[^-]"`
	// Container of each pod; the first one where it is left out.
	Container string `yaml:"container" json:"container,omitempty" jsonschema:"pattern=^[^-]"`
}

// Load reads a machines file. The error is strict.Problems for mistakes in it, and wraps
// fs.ErrNotExist where there is none.
func Load(path string) (File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return File{}, fmt.Errorf("reading the machines file: %w", err)
	}
	root, err := strict.Parse(path, data)
	if err != nil {
		return File{}, err
	}
	f, err := decode(root)
	if err != nil {
		return File{}, err
	}
	f.resolvePaths(path)
	return f, nil
}

// decode reads a machines file's text. The error is strict.Problems.
func decode(root *strict.Node) (File, error) {
	var f File
	ps := strict.Decode(root, &f, "")
	if len(ps) == 0 {
		ps = f.check("machines")
	}
	if len(ps) > 0 {
		return File{}, ps.Locate(root, "")
	}
	return f, nil
}

// resolvePaths has the paths of a file no longer depend on where that lies.
func (f File) resolvePaths(path string) {
	for _, m := range f.Machines {
		if m.SSH != nil {
			m.SSH.Identity, m.SSH.Config = resolvePath(path, m.SSH.Identity), resolvePath(path, m.SSH.Config)
		}
	}
}

// resolvePath is the path of a file that another one names.
func resolvePath(file, path string) string {
	if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// check finds what the types cannot tell, of machines at a path of a file.
func (f File) check(path string) (ps strict.Problems) {
	named := map[string]int{}
	for i, m := range f.Machines {
		at := fmt.Sprintf("%s[%d]", path, i)
		report := func(key, hint, format string, args ...any) {
			ps = append(ps, strict.Problem{Path: strict.Join(at, key), Message: fmt.Sprintf(format, args...), Hint: hint})
		}
		if m.SSH == nil && m.Kubernetes == nil && m.Command == nil {
			ps = append(ps, strict.Problem{Path: at, Message: "nothing says how the machine is reached", Hint: "give ssh, kubernetes or command"})
		}
		if m.Name == "" && m.Kubernetes == nil {
			ps = append(ps, strict.Problem{Path: at, Message: "name is missing"})
		}
		if first, taken := named[m.Name]; taken && m.Name != "" {
			report("name", "give it another name", "the name %q is that of %s[%d], too", m.Name, path, first)
		}
		named[m.Name] = i
		if m.Addr != "" {
			if _, err := netip.ParseAddr(m.Addr); err != nil {
				report("addr", "other machines reach it by this address without looking up a name", "%q is not an IP address", m.Addr)
			}
		}
		if m.Kubernetes != nil && (m.Addr != "" || m.Site != "") {
			report("kubernetes", "leave addr and site out", "addr and site are of one machine, and kubernetes may be several")
		}
		if m.Sudo && m.SSH == nil {
			report("sudo", "it is for machines that ssh reaches", "sudo goes with ssh")
		}
	}
	return ps
}

// ErrNoShell says that a machine is reached by a command that is an agent's, and no shell.
var ErrNoShell = errors.New("it is reached by a command that runs an agent and nothing else")

// Address is the one that others reach the machine by, as far as the file tells: "" where only the
// machine itself knows.
func (m Entry) Address() string {
	if m.Addr != "" || m.SSH == nil {
		return m.Addr
	}
	host := m.SSH.Host[strings.LastIndex(m.SSH.Host, "@")+1:]
	if _, err := netip.ParseAddr(host); err != nil {
		return ""
	}
	return host
}

// Ref is how another file says which machines it is about: a machines file, or the machines
// themselves as such a file lists them. The zero value says nothing.
type Ref struct {
	// File is the path of a machines file, relative to the file that names it.
	File string
	// List are the machines; nil where File names them.
	List []Entry
}

var _ strict.Decoder = (*Ref)(nil)

// IsSet tells whether machines are given.
func (g Ref) IsSet() bool { return g.File != "" || g.List != nil }

// DecodeNode implements strict.Decoder: a single value is a path.
func (g *Ref) DecodeNode(n *strict.Node, path string, report func(strict.Problem)) {
	switch n.Kind {
	case strict.Text:
		*g = Ref{File: n.Scalar}
	case strict.List:
		*g = Ref{List: []Entry{}}
		for _, p := range strict.Decode(n, &g.List, path) {
			report(p)
		}
	default:
		report(strict.Problem{Pos: n.Pos, Path: path, Message: fmt.Sprintf("%s: want the path of a machines file or a list of machines, not %v", path, n.Kind),
			Hint: "write machines: machines.yaml, or machines: [{name: rack-1, ssh: lab@10.0.0.11}]"})
	}
}

// Check finds what is wrong with machines that are listed at a path of a file.
func (g Ref) Check(path string) strict.Problems { return File{Machines: g.List}.check(path) }

// MarshalJSON writes what the file says.
func (g Ref) MarshalJSON() ([]byte, error) {
	if g.List != nil {
		return json.Marshal(g.List)
	}
	return json.Marshal(g.File)
}

// Load is the machines that are given in a file, whose place paths are relative to.
func (g Ref) Load(in string) (File, error) {
	if g.List == nil {
		return Load(resolvePath(in, g.File))
	}
	f := File{Machines: g.List}
	f.resolvePaths(in)
	return f, nil
}
