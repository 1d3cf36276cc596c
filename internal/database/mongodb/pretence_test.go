package mongodb

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// asked is a command of the management and its receiver.
type asked struct {
	role, database string
	command        bson.D
}

// conversation is the sequence of commands to a cluster of two shards. The last shard is drained.
var conversation = []asked{
	{roleShard, "admin", bson.D{{Key: "ping", Value: 1}}},
	{roleShard, "admin", bson.D{{Key: "isMaster", Value: 1}}},
	{roleShard, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}}},
	{roleShard, "admin", bson.D{{Key: "replSetGetConfig", Value: 1}}},
	{roleShard, "admin", bson.D{{Key: "replSetReconfig", Value: setConfig{Name: shardName(0), Version: 1}}}},
	{roleRouter, "admin", bson.D{{Key: "isMaster", Value: 1}}},
	{roleRouter, "admin", bson.D{{Key: "listShards", Value: 1}}},
	{roleRouter, "admin", bson.D{{Key: "removeShard", Value: "shard9"}}},
	{roleRouter, "admin", bson.D{{Key: "removeShard", Value: shardName(1)}}},
	{roleRouter, "admin", bson.D{{Key: "removeShard", Value: shardName(1)}}},
	{roleRouter, databaseName, bson.D{{Key: "aggregate", Value: collectionName}, {Key: "cursor", Value: bson.D{}},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$collStats", Value: bson.D{{Key: "count", Value: bson.D{}}}}}}}}},
}

// A real and a fake cluster receive the same commands: each field of a fake response is in the real one, with values of
// the same type, and errors have the same codes.
func TestFakeAnswersLikeServer(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	options := database.Options{"topology": "sharded", "config_servers": 1, "mongos": "n1"}
	w := newWorld()
	pretended := answers(t, startFake(t, w, fakeHosts(t, w, 2), options))
	db := New()
	real := answers(t, dbtest.Start(t, db, database.Env{Nodes: testhost.Loopback(t, 2), Options: options}).(*cluster))
	for i, a := range conversation {
		for _, path := range slices.Sorted(maps.Keys(pretended[i])) {
			if got, want := pretended[i][path], real[i][path]; got != want {
				t.Errorf("%d %s to %s: %s is %s, of a real server %q", i, a.command[0].Key, a.role, path, got, want)
			}
		}
	}
}

// answers are the types of the fields of each answer, by path.
func answers(t *testing.T, c *cluster) []map[string]string {
	t.Helper()
	var all []map[string]string
	for _, a := range conversation {
		s := c.Select(func(s *server) bool { return s.role == a.role })[0]
		raw, err := s.admin.Database(a.database).RunCommand(t.Context(), a.command).Raw()
		types := make(map[string]string)
		var refused mongo.CommandError
		switch {
		case errors.As(err, &refused):
			types["code"] = fmt.Sprint(refused.Code, " ", refused.Name)
		case err != nil:
			t.Fatalf("%s: %v", a.command[0].Key, err)
		default:
			typesOf(types, "", raw)
		}
		all = append(all, types)
	}
	return all
}

// typesOf records the types of a document's fields, and those of the first element of an array.
func typesOf(into map[string]string, path string, raw bson.Raw) {
	elements, err := raw.Elements()
	if err != nil {
		into[path] = err.Error()
	}
	for _, e := range elements {
		v := e.Value()
		name := path + "." + e.Key()
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			typesOf(into, name, v.Document())
		case bson.TypeArray:
			into[name] = v.Type.String()
			if values, err := v.Array().Values(); err == nil && len(values) > 0 && values[0].Type == bson.TypeEmbeddedDocument {
				typesOf(into, name, values[0].Document())
			}
		default:
			into[name] = v.Type.String()
		}
	}
}
