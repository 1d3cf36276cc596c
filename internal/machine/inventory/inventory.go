// Package inventory reads the machines file: which machines are available, how to reach them, and how much of them may be
// used. Trials run on whole machines, or labs span them.
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

type File struct {
	// Machines are the available machines.
	Machines []Entry `yaml:"machines" json:"machines" jsonschema:"required,minItems=1"`
}

// Entry is one machine, or the machines of a Kubernetes cluster. Exactly one of ssh, kubernetes and command is set.
type Entry struct {
	// Name identifies the machine in messages, plans and reports. It is optional for kubernetes, where the cluster's names
	// apply.
	Name string `yaml:"name" json:"name,omitempty" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	// SSH reaches the machine with the system's ssh. ssh_config, agent, keys, jump hosts and known_hosts work as in
	// OpenSSH. ssh never asks for a password.
	SSH *SSH `yaml:"ssh" json:"ssh,omitempty"`
	// Kubernetes reaches the pods of a cluster with kubectl, one pod for each machine.
	Kubernetes *Kubernetes `yaml:"kubernetes" json:"kubernetes,omitempty"`
	// Command is a program with arguments that runs `skerry agent machine` on the machine and carries its standard input
	// and output.
	Command []string `yaml:"command" json:"command,omitempty" jsonschema:"minItems=1"`
	// Sudo runs skerry as root with `sudo -n` if ssh logs in as another user.
	Sudo bool `yaml:"sudo" json:"sudo,omitempty"`
	// Site is the site that the machine represents, if any.
	Site string `yaml:"site" json:"site,omitempty"`
	// Addr is the IP address that other machines use. Default: the host of ssh if that is an address, else the source
	// address of the machine's packets.
	Addr string `yaml:"addr" json:"addr,omitempty"`
	// Cores is how many processors may be used. Default: all.
	Cores float64 `yaml:"cores" json:"cores,omitempty" jsonschema:"minimum=0"`
	// Memory is how much memory may be used. Default: all.
	Memory unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Whole makes the machine itself a node of one lab at a time, with its own network, disk and kernel, without limits.
	Whole bool `yaml:"whole" json:"whole,omitempty"`

	pod string // of an expanded one
}

func (Entry) Alternatives() [][]string { return [][]string{{"ssh", "kubernetes", "command"}} }

// SSH holds the settings of the system's ssh.
type SSH struct {
	// Host is a host, USER@HOST, or a name from ssh_config.
	Host string `yaml:"host" json:"host" jsonschema:"required,pattern=^[^-\\s][^\\s]*$"`
	// User to log in as.
	User string `yaml:"user" json:"user,omitempty" jsonschema:"pattern=^[^-\\s][^\\s]*$"`
	// Port of the server. Default: ssh's own.
	Port int `yaml:"port" json:"port,omitempty" jsonschema:"minimum=1,maximum=65535"`
	// Identity is a key file; ~ is the home folder, other paths are relative to the machines file.
	Identity string `yaml:"identity" json:"identity,omitempty"`
	// Config replaces the user's ssh_config. Paths are resolved like Identity.
	Config string `yaml:"config" json:"config,omitempty"`
	// Options are further settings for ssh's -o.
	Options []string `yaml:"options" json:"options,omitempty"`
}

// Shorthand: "ssh: lab@10.0.0.11" means "ssh: {host: lab@10.0.0.11}".
func (SSH) Shorthand() string { return "host" }

// Kubernetes selects pods, one on each machine, such as those of a DaemonSet.
type Kubernetes struct {
	// Context of kubectl's configuration. Default: the current one.
	Context string `yaml:"context" json:"context,omitempty" jsonschema:"pattern=^[^-]"`
	// Namespace of the pods. Default: that of the context.
	Namespace string `yaml:"namespace" json:"namespace,omitempty" jsonschema:"pattern=^[^-]"`
	// Selector selects the pods by labels.
	Selector string `yaml:"selector" json:"selector" jsonschema:"required,pattern=^[^-]"`
	// Container of each pod. Default: the first one.
	Container string `yaml:"container" json:"container,omitempty" jsonschema:"pattern=^[^-]"`
}

// Load reads a machines file. The error is strict.Problems for invalid content; it wraps fs.ErrNotExist for a missing file.
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

// resolvePaths makes paths independent of the machines file's location.
func (f File) resolvePaths(path string) {
	for _, m := range f.Machines {
		if m.SSH != nil {
			m.SSH.Identity, m.SSH.Config = resolvePath(path, m.SSH.Identity), resolvePath(path, m.SSH.Config)
		}
	}
}

func resolvePath(file, path string) string {
	if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// check checks what types cannot express. path is the position of the machines in their file.
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

// ErrNoShell is returned for a machine whose command runs an agent, not a shell.
var ErrNoShell = errors.New("it is reached by a command that runs an agent and nothing else")

// LocalCommand returns the command of the user that runs on the local machine to reach the machine: command, or ssh with
// settings that can be commands (ProxyCommand). "" for ssh and kubectl alone.
func (m Entry) LocalCommand() string {
	switch {
	case m.Command != nil:
		return "command: " + strings.Join(m.Command, " ")
	case m.SSH != nil && (m.SSH.Config != "" || len(m.SSH.Options) > 0):
		return "ssh: " + strings.Join(m.SSH.command(), " ")
	}
	return ""
}

// Address returns the address for other machines, "" if the file does not determine it.
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

// Ref refers to machines from another file: the path of a machines file, or an inline list.
type Ref struct {
	// File is the path of a machines file, relative to the file that names it.
	File string
	// List holds inline machines; nil if File is set.
	List []Entry
}

var _ strict.Decoder = (*Ref)(nil)

// IsSet reports whether machines are given.
func (g Ref) IsSet() bool { return g.File != "" || g.List != nil }

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

// Check checks inline machines at a position in their file.
func (g Ref) Check(path string) strict.Problems { return File{Machines: g.List}.check(path) }

func (g Ref) MarshalJSON() ([]byte, error) {
	if g.List != nil {
		return json.Marshal(g.List)
	}
	return json.Marshal(g.File)
}

// Load returns the machines. Relative paths are resolved against the referring file.
func (g Ref) Load(in string) (File, error) {
	if g.List == nil {
		return Load(resolvePath(in, g.File))
	}
	f := File{Machines: g.List}
	f.resolvePaths(in)
	return f, nil
}
