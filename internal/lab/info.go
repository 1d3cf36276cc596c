package lab

import (
	"time"

	"skerry/internal/lab/service"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

// Info describes a lab found in a state directory.
type Info struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Problem says what is wrong with a lab that is damaged or dead.
	Problem string    `json:"problem,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// OwnerPID is the command that an owned lab ends with.
	OwnerPID int `json:"owner_pid,omitempty"`
	// Holder is the process that keeps the user namespace of a rootless lab.
	Holder   *machine.Process `json:"holder,omitempty"`
	Engine   string           `json:"engine,omitempty"`
	Why      string           `json:"engine_why,omitempty"`
	Factor   float64          `json:"scale,omitempty"`
	Topology string           `json:"topology,omitempty"`
	Nodes    []NodeInfo       `json:"nodes,omitempty"`
	Links    []Link           `json:"links,omitempty"`
	// Service is how clients reach the database, nil without one.
	Service   *service.Plan     `json:"service,omitempty"`
	Processes int               `json:"processes"`
	Warnings  []string          `json:"warnings,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"`
}

// NodeInfo describes a node of a lab.
type NodeInfo struct {
	Name string        `json:"name"`
	Site string        `json:"site"`
	Role topology.Role `json:"role,omitempty"`
	Addr string        `json:"addr"`
	Dir  string        `json:"dir"`
	// Machine is the name of its machine, "" where the lab is on this one alone.
	Machine string `json:"machine,omitempty"`
	// Netns is the name that `ip netns` knows, or the path of the namespace.
	Netns string `json:"netns"`
}

// State of a lab in a state directory.
type State = machine.State

// States of labs.
const (
	StateUp      = machine.Up
	StateOwned   = machine.Owned   // up or coming up, and owned by a running command
	StateDamaged = machine.Damaged // its emulator or its namespaces are gone
	StateDead    = machine.Dead    // left over; the next Sweep clears it
)
