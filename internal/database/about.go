package database

import (
	"reflect"
	"runtime"
	"strings"
	"time"

	"skerry/internal/install"
)

// About describes a database for the registry, the Makefile, the tests and the documentation.
type About struct {
	// Name is the database's name in experiments.
	Name string
	// New creates the database. The package of this function is the database's.
	New func() Database
	// Recipes are the installation recipes, the default version first; none for a database that is part of Skerry.
	Recipes []install.Recipe
	// Protocol names the client's protocol for custom databases, "" if it is not offered.
	Protocol string
	// Choices are the settings to choose from, nil for a database that is no candidate.
	Choices func(Placement) []Choice
	Row     Row
	Suite   Suite
	Smoke   Smoke
}

// Row is the database's row in docs/databases.md, without the columns that its recipe and Capabilities determine.
type Row struct {
	Note     string // after how it is installed
	Scan     string
	Resize   string // joining and leaving
	Replicas string
	Smallest string // cluster
}

// Suite is how the conformance suite is scheduled.
type Suite struct {
	// Takes is the approximate duration on two cores. The longest suite starts first.
	Takes time.Duration
	// Alone excludes other suites that load the machine at the same time.
	Alone bool
	// Waits marks a suite that mostly waits. It runs next to all others.
	Waits bool
}

// Smoke is the database's experiment in experiments/smoke.
type Smoke struct {
	// Text is the description of the experiment.
	Text string
	// Topology, Options and Workload are the experiment's fields. Empty means a mesh of three nodes
	// 5 ms apart, no options, and YCSB's workload A on 1,000 records.
	Topology, Options, Workload string
}

// Package is the import path of the database's folder.
func (a About) Package() string {
	name := runtime.FuncForPC(reflect.ValueOf(a.New).Pointer()).Name() // skerry/internal/database/redis.init.func1
	slash := strings.LastIndexByte(name, '/') + 1
	base, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + base
}

// Reads is the consistency of reads while members and links fail. A larger value promises more.
type Reads int

// Promises of reads.
const (
	// ReadsAny may return old values, in any order.
	ReadsAny Reads = iota
	// ReadsMonotonic never go back in time, and see every acknowledged write unless the members'
	// clocks disagree.
	ReadsMonotonic
	// ReadsLinearizable see every write that was acknowledged before they began.
	ReadsLinearizable
)

var readsNames = []string{"any", "monotonic", "linearizable"}

// String returns the name of the promise.
func (r Reads) String() string { return readsNames[r] }

// ReadsNames returns the names of all promises, the weakest first.
func ReadsNames() []string { return append([]string(nil), readsNames...) }

// Choice is a configuration of a database with its promise and its cost.
type Choice struct {
	// Name is unique among the choices of a database: "quorum", "local reads".
	Name    string
	Options Options
	Reads   Reads
	// Loses describes which acknowledged writes are lost with a member, "" for none.
	Loses string
	// GivesUp is the price of the choice.
	GivesUp string
}

// Placement is the input of choices.
type Placement struct {
	// Nodes are the data nodes, in topology order.
	Nodes []string
	// Near is the data node nearest to the client, and Site its site.
	Near, Site string
}

// Copies is the number of copies, three if there are enough nodes.
func (p Placement) Copies() int { return min(3, len(p.Nodes)) }
