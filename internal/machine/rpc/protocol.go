// Package rpc is the protocol between a client and an agent on another machine: HTTP/2 over the agent's
// standard input and output. HTTP/2 provides calls, cancellation, streams and flow control. No port is
// opened.
//
//	controller                                      agent
//	POST /part/send   {"of": ..., "ask": ...}\n ──►
//	                  stream of the request     ──►  (files written, standard input, a connection)
//	              ◄── {"answer": ...} or {"error": ...}\n
//	              ◄── stream of the answer           (files read, output, a connection)
//
// Request and response each begin with one JSON value. Most calls have no streams.
package rpc

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine"
	"skerry/internal/machine/pathprobe"
)

// Version is the protocol version. Both sides must have the same.
const Version = 1

// Greeting begins the agent's first line. A login shell may print lines before it.
const Greeting = "skerry agent machine"

// Target says what a call is about.
type Target struct {
	// Part is the number that Opened gave, 0 for the machine itself.
	Part int `json:"part,omitempty"`
	// Node is a node of the part, Container a container on one; else it is the part itself.
	Node      string             `json:"node,omitempty"`
	Container *machine.Container `json:"container,omitempty"`
	// Process is the number that Started gave.
	Process int `json:"process,omitempty"`
}

// Request is the first value of a call.
type Request struct {
	Target Target          `json:"of"`
	Params json.RawMessage `json:"ask,omitempty"`
}

// Response is the first value of the response.
type Response struct {
	Error  *Failure        `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Empty is asked, or answered, where a call says it all.
type Empty struct{}

// Hello is the self-description of an agent.
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

// OpenedPart is a part that was prepared or opened.
type OpenedPart struct {
	Part  int           `json:"part"`
	Facts machine.Facts `json:"facts"`
}

// HostInfo is a node or a container as it is found.
type HostInfo struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Addr string `json:"addr"`
	Dir  string `json:"dir"`
}

// StartRequest is host.Command, its streams apart.
type StartRequest struct {
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

// StartedProcess is a process that runs.
type StartedProcess struct {
	Process int `json:"process"`
	PID     int `json:"pid"`
}

// CarrierRequest asks for one.
type CarrierRequest struct {
	Cable machine.Cable `json:"cable"`
	Up    bool          `json:"up"`
}

// DialRequest is where a connection leads.
type DialRequest struct {
	Network string `json:"network"`
	Addr    string `json:"addr"`
}

// FileRequest names a file and what is to become of it.
type FileRequest struct {
	Path   string `json:"path"`
	To     string `json:"to,omitempty"`     // of Rename
	Offset int64  `json:"offset,omitempty"` // of Open
	Mode   uint32 `json:"mode,omitempty"`   // of Write
	UID    uint32 `json:"uid,omitempty"`    // of Own
	GID    uint32 `json:"gid,omitempty"`
	Data   []byte `json:"data,omitempty"` // of Append
}

// StopRequest is a process's end.
type StopRequest struct {
	Grace time.Duration `json:"grace_ns"`
}

// Timestamp is the time of a machine's clock, in ns since 1970.
type Timestamp struct {
	Now int64 `json:"now_ns"`
}

// RouteRequest asks for the devices through which a node sends packets to addresses.
type RouteRequest struct {
	Node string       `json:"node"`
	To   []netip.Addr `json:"to"`
}

// ListeningRequest asks whether a program listens on a port of a node.
type ListeningRequest struct {
	Node string `json:"node"`
	Port int    `json:"port"`
}

// PathResult is what was found on the way to another machine, as far as it went.
type PathResult struct {
	Result  pathprobe.Result `json:"result"`
	Problem *Failure         `json:"problem,omitempty"`
}

// What is done to a node, as host.Controls has it.
const (
	Freeze    = "freeze"
	Thaw      = "thaw"
	MountDisk = "mount disk"
	FillDisk  = "fill disk"
	FreeDisk  = "free disk"
	LimitDisk = "limit disk"
	LimitCPU  = "limit CPU"
)

// ControlRequest has something done to a node.
type ControlRequest struct {
	Action string           `json:"do"`
	Bytes  int64            `json:"bytes,omitempty"`
	Disk   cgroup.DiskLimit `json:"disk,omitzero"`
	Cores  float64          `json:"cores,omitempty"`
}

const (
	// silence is how long nothing may come before the other side is asked whether it lives, answer
	// how long that may take: an agent whose controller is out of reach for longer ends.
	pingAfter   = 20 * time.Second
	pingTimeout = 40 * time.Second
	// streams bounds the calls at a time: a process that runs is one.
	maxStreams = 100_000
	// A stream may have perStream bytes under way, all together as much as they like: what
	// is unread on one must not hold up the others.
	streamBuffer = 1 << 20
	connBuffer   = 1 << 30
)

// HTTP2Config is how both sides have the protocol.
func HTTP2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, StrictMaxConcurrentRequests: true,
		MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer,
		SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
	}
}

// Protocols is HTTP/2 without TLS: what carries it keeps others out.
func Protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// FailureTrailer is the trailer that tells the Failure that a stream of an answer ended with, in JSON as a
// URL's path has it.
const FailureTrailer = "Skerry-Broken"
