package all

import (
	"slices"

	"skerry/internal/database"
	"skerry/internal/database/custom"
)

// builtin is the databases by name, for those that users describe.
type builtin map[string]database.Database

var _ custom.Builtin = builtin(nil)

// Protocol implements own.Builtin.
func (b builtin) Protocol(name string) (database.Database, bool) {
	for _, a := range Registry() {
		if a.Protocol == name && name != "" {
			return b.Named(a.Name)
		}
	}
	return nil, false
}

// Protocols implements own.Builtin.
func (b builtin) Protocols() []string {
	var names []string
	for _, a := range Registry() {
		if a.Protocol != "" {
			names = append(names, a.Protocol)
		}
	}
	slices.Sort(names)
	return names
}

// Named implements own.Builtin.
func (b builtin) Named(name string) (database.Database, bool) {
	d, ok := b[name]
	return d, ok
}
