// Package all names every database that the laboratory has.
package all

import (
	"slices"

	"skerry/internal/database"
	"skerry/internal/database/cassandra"
	"skerry/internal/database/custom"
	"skerry/internal/database/etcd"
	"skerry/internal/database/ferretdb"
	"skerry/internal/database/galera"
	"skerry/internal/database/groupreplication"
	"skerry/internal/database/hbase"
	"skerry/internal/database/hydra"
	"skerry/internal/database/metadata"
	"skerry/internal/database/mongodb"
	"skerry/internal/database/ndb"
	"skerry/internal/database/postgres"
	"skerry/internal/database/redis"
	"skerry/internal/install"
)

// Registry is every database, in the order of lists.
func Registry() []database.About {
	return []database.About{
		redis.About,
		redis.ValkeyAbout,
		etcd.About,
		postgres.About,
		mongodb.About,
		ferretdb.About,
		galera.About,
		groupreplication.About,
		ndb.About,
		hbase.About,
		cassandra.About,
		hydra.About,
		metadata.About,
	}
}

// Databases returns new databases by name, and under database.Exec the kind of custom databases.
func Databases() map[string]database.Database {
	all := make(builtin)
	for _, a := range Registry() {
		all[a.Name] = a.New()
	}
	all[database.Exec] = custom.NewKind(all)
	return all
}

// Recipes say how databases are installed, in the order of a list.
func Recipes() []install.Recipe {
	var recipes []install.Recipe
	for _, a := range Registry() {
		recipes = append(recipes, a.Recipes...)
	}
	return recipes
}

type builtin map[string]database.Database

var _ custom.Builtin = builtin(nil)

func (b builtin) Protocol(name string) (database.Database, bool) {
	for _, a := range Registry() {
		if a.Protocol == name && name != "" {
			return b.Named(a.Name)
		}
	}
	return nil, false
}

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

func (b builtin) Named(name string) (database.Database, bool) {
	d, ok := b[name]
	return d, ok
}
