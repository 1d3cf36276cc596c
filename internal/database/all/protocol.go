package all

import (
	"maps"
	"slices"

	"skerry/internal/database"
	"skerry/internal/database/cassandra"
	"skerry/internal/database/etcd"
	"skerry/internal/database/galera"
	"skerry/internal/database/mongodb"
	"skerry/internal/database/own"
	"skerry/internal/database/postgres"
	"skerry/internal/database/redis"
)

// protocols maps a wire protocol to the database whose client speaks it.
var protocols = map[string]string{
	"cql":      cassandra.Name,
	"etcd":     etcd.Name,
	"mongodb":  mongodb.Name,
	"mysql":    galera.Name,
	"postgres": postgres.Name,
	"redis":    redis.Name,
}

// builtin is the databases by name, for those that users describe.
type builtin map[string]database.Database

var _ own.Builtin = builtin(nil)

// Protocol implements own.Builtin.
func (b builtin) Protocol(name string) (database.Database, bool) { return b.Named(protocols[name]) }

// Protocols implements own.Builtin.
func (b builtin) Protocols() []string { return slices.Sorted(maps.Keys(protocols)) }

// Named implements own.Builtin.
func (b builtin) Named(name string) (database.Database, bool) {
	d, ok := b[name]
	return d, ok
}
