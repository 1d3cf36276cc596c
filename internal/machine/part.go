package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
	"skerry/internal/topology/flavor"
)

// PartSpec describes the part of a lab that Prepare makes.
type PartSpec struct {
	// Lab is the lab's name: lower-case letters, digits and hyphens.
	Lab string `json:"lab"`
	// Engine is "netem", "userspace", or "auto" (also ""): netem if the kernel supports it.
	Engine string `json:"engine,omitempty"`
	// Owned parts end with the calling process: if it dies without Down, the next Sweep removes
	// them.
	Owned bool `json:"owned,omitempty"`
	// Forward makes nodes forward packets. IPv6 gives their devices link-local addresses.
	Forward bool `json:"forward,omitempty"`
	IPv6    bool `json:"ipv6,omitempty"`
	// Whole makes the machine itself the part's only node: in the machine's network, on its disk,
	// without limits. A machine runs at most one such part at a time.
	Whole bool `json:"whole,omitempty"`
	// TCP overrides kernel settings of the nodes. Keys are names without "net.ipv4.tcp_".
	TCP map[string]string `json:"tcp,omitempty"`
}

type NodeSpec struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	Addr string `json:"addr"` // IPv4 address of the node, independent of its links
	// CPU is a quota in cores, 0 for none. Memory is in bytes, 0 for no limit.
	CPU    float64 `json:"cpu,omitempty"`
	Memory int64   `json:"memory,omitempty"`
	// Weight is the node's relative CPU share under contention; 0 means 1.
	Weight int `json:"weight,omitempty"`
	// Disk limits the node's disk throughput.
	Disk flavor.Disk `json:"disk,omitzero"`
	// Volume is the file system of the node's directory.
	Volume topology.Volume `json:"volume,omitzero"`
}

// NameRecord maps a host name to its address.
type NameRecord struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
}

// UnenforcedLimit is a limit that this machine cannot enforce on a node.
type UnenforcedLimit struct {
	Node string `json:"node"`
	// Limit is "CPU", "memory" or "disk throughput"; "" means all limits.
	Limit string `json:"limit,omitempty"`
	Why   string `json:"why"`
}

// Process identifies a process uniquely until the machine restarts.
type Process = procfs.Process

// Facts is the state of a part as its machine reports it.
type Facts struct {
	ID string `json:"id"`
	// Engine is the link engine; Why is the reason for that choice.
	Engine string `json:"engine"`
	Why    string `json:"engine_why"`
	// Emulator is the PID of the process that moves packets, Tunneller of the process that encrypts
	// them. They are 0 if the kernel does the work.
	Emulator  int `json:"emulator,omitempty"`
	Tunneller int `json:"tunneller,omitempty"`
	// Holder is the process that keeps the user namespace of a rootless part alive.
	Holder *Process `json:"holder,omitempty"`
	// Owned is set if the part ends with its owner process.
	Owned bool `json:"owned,omitempty"`
	// Warnings lists missing capabilities, such as CPU limits or real-time priority.
	Warnings []string `json:"warnings,omitempty"`
	// Unenforced lists the limits that the machine cannot enforce.
	Unenforced []UnenforcedLimit `json:"unheld,omitempty"`
	// Settings are the effective kernel settings of the nodes.
	Settings map[string]string `json:"settings,omitempty"`
	Nodes    []NodeFacts       `json:"nodes,omitempty"`
	// Lab is the description passed to Commit.
	Lab json.RawMessage `json:"lab,omitempty"`
}

// NodeFacts is the state of a node as its machine reports it.
type NodeFacts struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
	// Machine is the name of the node's machine, "" in a lab on one machine.
	Machine string `json:"machine,omitempty"`
	// Exe is the path of the skerry program on the node's machine, "" if unknown.
	Exe string `json:"exe,omitempty"`
	// Dir is the node's directory on its machine.
	Dir string `json:"dir"`
	// Netns is the namespace's name in `ip netns`, or its path. For a whole machine it is the path of
	// the calling process's own namespace.
	Netns string `json:"netns"`
}

// PartStatus is a part as List reports it.
type PartStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Problem describes the fault of a damaged or dead part.
	Problem string `json:"problem,omitempty"`
	// Owner is the PID of the owner process.
	Owner int `json:"owner,omitempty"`
	// Processes is the number of running processes on the nodes.
	Processes int `json:"processes,omitempty"`
	// Facts and Note are empty for an incomplete part.
	Facts Facts           `json:"facts"`
	Note  json.RawMessage `json:"note,omitempty"`
}

// State of a part.
type State string

// States of parts.
const (
	Up      State = "up"
	Owned   State = "owned"   // starting or up, and owned by a running command
	Damaged State = "damaged" // the emulator or the namespaces are missing
	Dead    State = "dead"    // left behind; the next Sweep removes it
)

// Member is the part of a lab on one machine.
type Member struct {
	// Name is the machine's name, "" in a lab on this machine only.
	Name string
	Part
}

// Clock is the offset of a machine's clock from the caller's clock; positive means ahead.
type Clock struct {
	Offset time.Duration `json:"offset_ns"`
	// Uncertainty is the maximum error of Offset, in either direction.
	Uncertainty time.Duration `json:"uncertainty_ns"`
}

// RemotePart is a part on a machine with another clock.
type RemotePart interface {
	// Clock measures the offset of the machine's clock.
	Clock(ctx context.Context) (Clock, error)
	// Kernel returns the release of the machine's kernel.
	Kernel() string
}

// LocalHost is a node, or a container of a node, on this machine. Threads can enter its network.
type LocalHost interface {
	host.NamespaceHost
	// Exec replaces the calling process by a program on the node. It returns only on failure.
	Exec(c host.Command) error
}

// ErrRemoteHost is returned for a node on another machine.
var ErrRemoteHost = errors.New("the node is not on this machine")

// AsLocalHost returns h for work inside its network, or ErrRemoteHost.
func AsLocalHost(h host.Host) (LocalHost, error) {
	if in, ok := h.(LocalHost); ok {
		return in, nil
	}
	return nil, fmt.Errorf("%s: %w", h.Name(), ErrRemoteHost)
}
