package custom

import (
	"slices"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/redis"
	"skerry/test/dbtest"
)

// builtins are the built-in databases of these tests.
type builtins map[string]database.Database

func (b builtins) Protocol(name string) (database.Database, bool) { return b.Named(name) }

func (b builtins) Named(name string) (database.Database, bool) {
	db, ok := b[name]
	return db, ok
}

func (b builtins) Protocols() []string {
	var names []string
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The suite runs on Redis as described by the example.
func TestConformanceOfRedisDescribed(t *testing.T) {
	d, err := loadDefinition("../../../examples/own/redis.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, dbtest.Config{
		New: func() database.Database { return New(d, builtins{"redis": redis.New()}) }, Port: 6379, Upsert: true,
		Options: database.Options{"appendfsync": "always"}, Survives: true, DiskFull: 4 << 20,
		BadOptions: []database.Options{{"port": "many"}, {"prot": 1}},
	})
}

// The suite runs on the example whose client is a program.
func TestConformanceOfAProgram(t *testing.T) {
	d, err := loadDefinition("../../../examples/own/kv.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, dbtest.Config{
		New: func() database.Database { return New(d, builtins{}) }, Port: 7000, Survives: true, Rows: 200, DiskFull: 8 << 20,
	})
}
