package machine

import (
	"encoding/json"
	"net/netip"

	"skerry/internal/kernel/procfs"
	"skerry/internal/topology"
	"skerry/internal/topology/flavor"
)

// Ask says what part of a lab is to be prepared.
type Ask struct {
	// Lab is its name: lower-case letters, digits and hyphens.
	Lab string `json:"lab"`
	// Engine is "netem", "userspace", or "auto" (also ""): netem where the kernel has it.
	Engine string `json:"engine,omitempty"`
	// Owned parts end with the process that asks: when it dies without Down, the next Sweep
	// clears them.
	Owned bool `json:"owned,omitempty"`
	// Forward says that nodes pass packets on, IPv6 that their devices have link-local
	// addresses.
	Forward bool `json:"forward,omitempty"`
	IPv6    bool `json:"ipv6,omitempty"`
	// Whole says that the part's one node is the machine itself: in its own network and on its own disk,
	// without limits. One part of a machine can be that at a time.
	Whole bool `json:"whole,omitempty"`
	// TCP holds kernel settings of the nodes that differ from the fixed ones, by their names without "net.ipv4.tcp_".
	TCP map[string]string `json:"tcp,omitempty"`
}

// Node asks for a node.
type Node struct {
	Name string `json:"name"`
	Site string `json:"site,omitempty"`
	Addr string `json:"addr"` // IPv4, of the node whatever its links
	// CPU is a quota in cores, 0 for none. Memory is in bytes, 0 for no limit.
	CPU    float64 `json:"cpu,omitempty"`
	Memory int64   `json:"memory,omitempty"`
	// Weight is how many times another node's processor time it gets while there is too
	// little for all, 0 for as much.
	Weight int `json:"weight,omitempty"`
	// Disk bounds what it does on its disk.
	Disk flavor.Disk `json:"disk,omitzero"`
	// Volume is what its directory is on.
	Volume topology.Volume `json:"volume,omitzero"`
}

// Named is a name and what it stands for.
type Named struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
}

// Lack is a limit that a node is not held to.
type Lack struct {
	Node string `json:"node"`
	// Limit is "CPU", "memory" or "disk throughput"; "" says that the node is not limited at
	// all.
	Limit string `json:"limit,omitempty"`
	Why   string `json:"why"`
}

// Process names one process of a machine for as long as the machine runs.
type Process = procfs.Process

// Facts are what a machine tells of a part.
type Facts struct {
	ID string `json:"id"`
	// Engine is which engine makes the links, Why says why that one.
	Engine string `json:"engine"`
	Why    string `json:"engine_why"`
	// Emulator is the process that moves packets, Tunneller the one that encrypts them; 0
	// where none does, or the kernel.
	Emulator  int `json:"emulator,omitempty"`
	Tunneller int `json:"tunneller,omitempty"`
	// Holder is the process that keeps the user namespace of a part made without root.
	Holder *Process `json:"holder,omitempty"`
	// Owned says that the part ends with its owner, a process.
	Owned bool `json:"owned,omitempty"`
	// Warnings list what the machine could not give: CPU limits, real-time priority.
	Warnings []string `json:"warnings,omitempty"`
	// Unheld are the limits that nodes are not held to.
	Unheld []Lack `json:"unheld,omitempty"`
	// Settings are the kernel's, as nodes have them.
	Settings map[string]string `json:"settings,omitempty"`
	Nodes    []NodeFacts       `json:"nodes,omitempty"`
	// Lab is what Keep was given.
	Lab json.RawMessage `json:"lab,omitempty"`
}

// NodeFacts are what a machine tells of a node.
type NodeFacts struct {
	Name string `json:"name"`
	Addr string `json:"addr"`
	// Machine is the name of its machine, "" where there is one alone.
	Machine string `json:"machine,omitempty"`
	// Exe is the skerry program on the node's machine, "" where it is not known.
	Exe string `json:"exe,omitempty"`
	// Dir is the node's directory on its machine.
	Dir string `json:"dir"`
	// Netns is the name that `ip netns` knows there, or the path of the namespace; for a node that is
	// the machine itself, the path by which any process finds its own.
	Netns string `json:"netns"`
}

// Found is a part as List finds it.
type Found struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Problem says what is wrong with a part that is damaged or dead.
	Problem string `json:"problem,omitempty"`
	// Owner is the process that an owned part ends with.
	Owner int `json:"owner,omitempty"`
	// Processes is how many of the nodes' run.
	Processes int `json:"processes,omitempty"`
	// Facts and Note are empty for a part that is half made or half gone.
	Facts Facts           `json:"facts"`
	Note  json.RawMessage `json:"note,omitempty"`
}

// State of a part.
type State string

// States of parts.
const (
	Up      State = "up"
	Owned   State = "owned"   // up or coming up, and owned by a running command
	Damaged State = "damaged" // its emulator or its namespaces are gone
	Dead    State = "dead"    // left over; the next Sweep clears it
)
