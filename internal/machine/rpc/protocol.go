// Package rpc is the protocol between a client and an agent on another machine: HTTP/2 over the agent's
// standard input and output. HTTP/2 provides calls, cancellation, streams and flow control. No port is
// opened.
//
//	controller                                      agent
//	POST /part/MakeNodes  {"of": ..., "ask": [...]}\n ──►
//	                  stream of the request     ──►  (files written, standard input, a connection)
//	              ◄── {"answer": ...} or {"error": ...}\n
//	              ◄── stream of the answer           (files read, output, a connection)
//
// Request and response each begin with one JSON value. Most calls have no streams: such a call is a method of an interface
// (machine.Part, host.Controls, host.Process, files.System), its parameters without the context, and its result.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/pathprobe"
)

// Version is the protocol version. Both sides must have the same.
const Version = 2

// Greeting begins the agent's first line. A login shell may print lines before it.
const Greeting = "skerry agent machine"

// CallTarget is the object of a call.
type CallTarget struct {
	// Part is the number of an OpenedPart, 0 for the machine itself.
	Part int `json:"part,omitempty"`
	// Node is a node of the part, Container a container on it; without either the target is the part.
	Node      string             `json:"node,omitempty"`
	Container *machine.Container `json:"container,omitempty"`
	// Process is the number of a StartedProcess.
	Process int `json:"process,omitempty"`
}

// Request is the first value of a call. P is the type of its parameters: any in the client, json.RawMessage in the agent.
type Request[P any] struct {
	Target CallTarget `json:"of"`
	Params []P        `json:"ask,omitempty"`
}

// Response is the first value of the response.
type Response struct {
	Error  *Failure        `json:"error,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// Empty is a request or response without fields.
type Empty struct{}

// Hello is the self-description of an agent.
type Hello struct {
	Version int `json:"version"`
	// Program is the SHA-256 of the agent's file, if requested.
	Program string `json:"program,omitempty"`
	PID     int    `json:"pid"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Kernel  string `json:"kernel"`
	Cores   int    `json:"cores"`
	Memory  int64  `json:"memory_bytes"`
	// Addr is the source address of packets to the Internet, "" without a route.
	Addr string `json:"addr,omitempty"`
	// Root is set if the agent is root, of the machine or of a user namespace.
	Root bool `json:"root"`
}

type OpenedPart struct {
	Part  int           `json:"part"`
	Facts machine.Facts `json:"facts"`
}

// HostInfo describes a node or a container.
type HostInfo struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Addr string `json:"addr"`
	Dir  string `json:"dir"`
}

// StartRequest is host.Command without its streams.
type StartRequest struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Log  string   `json:"log,omitempty"`
	UID  uint32   `json:"uid,omitempty"`
	GID  uint32   `json:"gid,omitempty"`
	// In, Out and Err are set for each stream that exists. Joined means that Err is the same stream as Out.
	In     bool `json:"in,omitempty"`
	Out    bool `json:"out,omitempty"`
	Err    bool `json:"err,omitempty"`
	Joined bool `json:"joined,omitempty"`
}

type StartedProcess struct {
	Process int `json:"process"`
	PID     int `json:"pid"`
}

// PathResult is the result of a path measurement, possibly partial.
type PathResult struct {
	Result  pathprobe.Result `json:"result"`
	Problem *Failure         `json:"problem,omitempty"`
}

const (
	// pingAfter is the silence after which the other side is pinged; an agent whose client does not answer the ping in time
	// ends.
	pingAfter   = 20 * time.Second
	pingTimeout = 40 * time.Second
	// maxStreams bounds concurrent calls; each running process is one.
	maxStreams = 100_000
	// Each stream may have streamBuffer bytes in flight, all together any number: unread data of one stream must not delay
	// the others.
	streamBuffer = 1 << 20
	connBuffer   = 1 << 30
)

// HTTP2Config is the configuration of both sides.
func HTTP2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, StrictMaxConcurrentRequests: true,
		MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connBuffer,
		SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
	}
}

// Protocols is HTTP/2 without TLS: the transport is authenticated.
func Protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// FailureTrailer is the trailer with the Failure that ended a response's stream, as JSON escaped for URL paths.
const FailureTrailer = "Skerry-Broken"

// Failure is an error encoded for another process.
type Failure struct {
	Text string `json:"text"`
	// Next is the advice.
	Next string `json:"next,omitempty"`
	// Is holds the names of the sentinel errors that match.
	Is []string `json:"is,omitempty"`
	// Errno is the system's error, 0 without one.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Exit is a program's exit status, 0 without one.
	Exit host.ExitCode `json:"exit,omitempty"`
}

// errorsByName maps the sentinel errors that keep their identity across machines to names.
var errorsByName = map[string]error{
	"machine.exists":       machine.ErrExists,
	"machine.not-found":    machine.ErrNotFound,
	"machine.in-use":       machine.ErrInUse,
	"machine.damaged":      machine.ErrDamaged,
	"machine.no-node":      machine.ErrNoNode,
	"machine.elsewhere":    machine.ErrElsewhere,
	"machine.kernel":       machine.ErrKernel,
	"link.exists":          link.ErrExists,
	"link.unknown":         link.ErrUnknown,
	"link.invalid":         link.ErrInvalid,
	"probe.no-answer":      probe.ErrNoAnswer,
	"host.closed":          host.ErrClosed,
	"host.name":            host.ErrName,
	"host.no-group":        host.ErrNoGroup,
	"cgroup.none":          cgroup.ErrNone,
	"cgroup.no-controller": cgroup.ErrNoController,
	"fs.exists":            fs.ErrExist,
	"fs.not-found":         fs.ErrNotExist,
	"fs.permission":        fs.ErrPermission,
	"fs.invalid":           fs.ErrInvalid,
	"fs.closed":            fs.ErrClosed,
	"context.canceled":     context.Canceled,
	"context.deadline":     context.DeadlineExceeded,
}

// NewFailure encodes an error for another process. It returns nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error(), Next: advice.Of(err)}
	for name, k := range errorsByName {
		if errors.Is(err, k) {
			f.Is = append(f.Is, name)
		}
	}
	errors.As(err, &f.Errno)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		f.Exit = host.ExitCode(exit.ExitCode())
	}
	return f
}

// Err decodes the error, so that errors.Is and errors.As match the original. It returns nil for nil.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	var is []error
	for _, name := range f.Is {
		is = append(is, errorsByName[name]) // nil, of a newer agent, is left out
	}
	if f.Errno != 0 {
		is = append(is, f.Errno)
	}
	if f.Exit != 0 {
		is = append(is, f.Exit)
	}
	err := advice.WithText(f.Text, errors.Join(is...))
	if f.Next != "" {
		err = advice.With(err, "%s", f.Next)
	}
	return err
}
