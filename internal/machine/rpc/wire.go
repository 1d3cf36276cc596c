// Package rpc is how a machine is asked from another one: HTTP/2 over one stream of bytes each
// way, an agent's standard input and output, so that calls, cancellations, streams and their flow
// control are the protocol's and nothing listens.
//
//	controller                                      agent
//	POST /part/send   {"of": ..., "ask": ...}\n ──►
//	                  stream of the request     ──►  (files written, standard input, a connection)
//	              ◄── {"answer": ...} or {"error": ...}\n
//	              ◄── stream of the answer           (files read, output, a connection)
//
// Each call begins, and is answered, with one value of JSON; most consist of no more.
package rpc

import (
	"encoding/json"
	"net/netip"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/reach"
)

// Version counts changes of what is said; both sides have the same.
const Version = 1

// Greeting is the line that an agent says first: what came before it, a login shell said.
const Greeting = "skerry agent machine"

// Of says what a call is about.
type Of struct {
	// Part is the number that Opened gave, 0 for the machine itself.
	Part int `json:"part,omitempty"`
	// Node is a node of the part, Container a container on one; else it is the part itself.
	Node      string             `json:"node,omitempty"`
	Container *machine.Container `json:"container,omitempty"`
	// Process is the number that Started gave.
	Process int `json:"process,omitempty"`
}

// Request begins a call.
type Request struct {
	Of  Of              `json:"of"`
	Ask json.RawMessage `json:"ask,omitempty"`
}

// Response begins its answer.
type Response struct {
	Error  *Failure        `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Nothing is asked, or answered, where a call says it all.
type Nothing struct{}

// Hello is what an agent says of itself.
type Hello struct {
	Version int `json:"version"`
	// Program is the SHA-256 of the agent's own file, where that was asked for.
	Program string `json:"program,omitempty"`
	PID     int    `json:"pid"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Kernel  string `json:"kernel"`
	Cores   int    `json:"cores"`
	Memory  int64  `json:"memory_bytes"`
	// Addr is the address that packets to far away leave with, "" where they cannot.
	Addr string `json:"addr,omitempty"`
	// Root says that the agent has the rights of root, of the machine or of a user namespace.
	Root bool `json:"root"`
}

// Opened is a part that was prepared or opened.
type Opened struct {
	Part  int           `json:"part"`
	Facts machine.Facts `json:"facts"`
}

// Host is a node or a container as it is found.
type Host struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Addr string `json:"addr"`
	Dir  string `json:"dir"`
}

// Start is host.Command, its streams apart.
type Start struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Log  string   `json:"log,omitempty"`
	UID  uint32   `json:"uid,omitempty"`
	GID  uint32   `json:"gid,omitempty"`
	// In, Out and Err say which streams there are. Joined says that Err is the stream Out.
	In     bool `json:"in,omitempty"`
	Out    bool `json:"out,omitempty"`
	Err    bool `json:"err,omitempty"`
	Joined bool `json:"joined,omitempty"`
}

// Started is a process that runs.
type Started struct {
	Process int `json:"process"`
	PID     int `json:"pid"`
}

// Carrier asks for one.
type Carrier struct {
	Cable machine.Cable `json:"cable"`
	Up    bool          `json:"up"`
}

// Address is where a connection leads.
type Address struct {
	Network string `json:"network"`
	Addr    string `json:"addr"`
}

// File names a file and what is to become of it.
type File struct {
	Path   string `json:"path"`
	To     string `json:"to,omitempty"`     // of Rename
	Offset int64  `json:"offset,omitempty"` // of Open
	Mode   uint32 `json:"mode,omitempty"`   // of Write
	UID    uint32 `json:"uid,omitempty"`    // of Own
	GID    uint32 `json:"gid,omitempty"`
	Data   []byte `json:"data,omitempty"` // of Append
}

// Stop is a process's end.
type Stop struct {
	Grace time.Duration `json:"grace_ns"`
}

// Moment is the time of a machine's clock, in ns since 1970.
type Moment struct {
	Now int64 `json:"now_ns"`
}

// Ways asks by which devices a node sends packets to addresses.
type Ways struct {
	Node string       `json:"node"`
	To   []netip.Addr `json:"to"`
}

// Listening asks whether a program listens on a port of a node.
type Listening struct {
	Node string `json:"node"`
	Port int    `json:"port"`
}

// Measured is what was found on the way to another machine, as far as it went.
type Measured struct {
	Result  reach.Result `json:"result"`
	Problem *Failure     `json:"problem,omitempty"`
}
