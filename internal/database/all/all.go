// Package all names every database that the laboratory has.
package all

import (
	"skerry/internal/database"
	"skerry/internal/database/cassandra"
	"skerry/internal/database/etcd"
	"skerry/internal/database/ferretdb"
	"skerry/internal/database/galera"
	"skerry/internal/database/groupreplication"
	"skerry/internal/database/hbase"
	"skerry/internal/database/hydra"
	"skerry/internal/database/metadata"
	"skerry/internal/database/mongodb"
	"skerry/internal/database/ndb"
	"skerry/internal/database/own"
	"skerry/internal/database/postgres"
	"skerry/internal/database/redis"
	"skerry/internal/install"
)

// Databases are the databases by name, and under database.Exec the kind that users
// describe. Each call makes them anew: what clients of one share, clients of another do
// not.
func Databases() map[string]database.Database {
	all := builtin{
		cassandra.Name:        cassandra.New(),
		etcd.Name:             etcd.New(),
		galera.Name:           galera.New(),
		groupreplication.Name: groupreplication.New(),
		hbase.Name:            hbase.New(),
		hydra.Name:            hydra.New(),
		metadata.Name:         metadata.New(),
		ndb.Name:              ndb.New(),
		postgres.Name:         postgres.New(),
		ferretdb.Name:         ferretdb.New(),
		mongodb.Name:          mongodb.New(),
		redis.Name:            redis.New(),
		redis.Valkey:          redis.NewValkey(),
	}
	all[database.Exec] = own.NewKind(all)
	return all
}

// Recipes say how databases are installed, in the order of a list.
func Recipes() []install.Recipe {
	return append([]install.Recipe{redis.Recipe, redis.ValkeyRecipe, etcd.Recipe, postgres.Recipe, mongodb.Recipe, ferretdb.Recipe, galera.Recipe, groupreplication.Recipe, ndb.Recipe, hbase.Recipe}, cassandra.Recipes()...)
}
