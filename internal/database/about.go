package database

import (
	"reflect"
	"runtime"
	"strings"
	"time"

	"skerry/internal/install"
)

// About is what the registry, the Makefile, the tests and the documentation know of a
// database. It stands in the database's own folder, and one line of internal/database/all
// names it: all else follows.
type About struct {
	// Name is how experiments call it.
	Name string
	// New makes it. The folder that this function stands in is the database's.
	New func() Database
	// Recipes say how it is installed, the default version's first; none where it is part of
	// skerry.
	Recipes []install.Recipe
	// Protocol is the name of the protocol that its client speaks, for databases that users
	// describe; "" where those have no use for it.
	Protocol string
	// Choices are the ways to set it that matter to who must choose a database; nil for one that
	// is not to be chosen among others.
	Choices func(Placement) []Choice
	Row     Row
	Suite   Suite
	Smoke   Smoke
}

// Row is the database's row in the overview of docs/databases.md. What is left out follows
// from its recipe and its Capabilities.
type Row struct {
	Note     string // after how it is installed
	Scan     string
	Resize   string // joining and leaving
	Replicas string
	Smallest string // cluster
}

// Suite is how its conformance suite is run beside those of others.
type Suite struct {
	// Takes is about how long it takes on two cores: of those that run one after the other
	// the longest begins first.
	Takes time.Duration
	// Alone is for many large processes: no other of those that load the machine runs beside.
	Alone bool
	// Waits is for one that mostly waits: it runs beside all others.
	Waits bool
}

// Smoke is its experiment in experiments/smoke: does it work here at all?
type Smoke struct {
	// Text asks that question, and says what the experiment is.
	Text string
	// Topology, Options and Workload are as the file has them; "" is a mesh of three nodes
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
