package ycsb

import (
	"embed"
	"strings"
)

//go:embed workloads
var workloads embed.FS

// BuiltinNames are the built-in workloads, YCSB's core workloads.
func BuiltinNames() []string { return []string{"a", "b", "c", "d", "e", "f"} }

// Builtin returns the properties of a core workload, by "a" or "workloada" in any case.
func Builtin(name string) (Properties, bool) {
	entries, ok := BuiltinEntries(name)
	return CollectEntries(entries), ok
}

// BuiltinEntries is Builtin for every setting with its line.
func BuiltinEntries(name string) ([]Entry, bool) {
	letter := strings.TrimPrefix(strings.ToLower(name), "workload")
	f, err := workloads.Open("workloads/workload" + letter)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	entries, err := ReadEntries(f)
	return entries, err == nil
}
