package mongodb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		err   string
	}{
		{nodes: 8},
		{nodes: 1},
		{nodes: 3, given: database.Options{"priorities": "n1=2,n2=0.5", "hidden": "n3", "non_voting": "n2,n3"}},
		{nodes: 5, given: database.Options{"topology": "sharded"}},
		{nodes: 9, given: database.Options{"topology": "sharded", "replicas": 3}},
		{nodes: 3, given: database.Options{"write_concern": "majority", "read_concern": "linearizable", "read_preference": "nearest"}},
		{nodes: 3, given: database.Options{"write_concern": 2}},
		{nodes: 3, given: database.Options{"shards": 3}, err: "shards is for topology: sharded"},
		{nodes: 3, given: database.Options{"topology": "sharded", "hidden": "n1"}, err: "hidden is for topology: replica_set"},
		{nodes: 3, given: database.Options{"topology": "sharded", "replicas": 4}, err: "need as many nodes"},
		{nodes: 3, given: database.Options{"topology": "sharded", "config_servers": 5}, err: "5 config servers"},
		{nodes: 51, err: "at most 50"},
		{nodes: 3, given: database.Options{"priorities": "n1"}, err: "NODE=PRIORITY"},
		{nodes: 3, given: database.Options{"write_concern": "most"}, err: "majority or a number"},
		{nodes: 3, given: database.Options{"write_concern": 0}, err: "majority or a number of members, 1 to"},
		{nodes: 3, given: database.Options{"read_prefrence": "nearest"}, err: "did you mean read_preference?"},
	} {
		_, err := parseOptions(test.nodes, test.given)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%d nodes, %v: %v", test.nodes, test.given, err)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%d nodes, %v: error %v, want %q", test.nodes, test.given, err, test.err)
		}
	}
}

// TestPlan checks the designs of CLOUDS and a cluster with more shards than nodes.
func TestPlan(t *testing.T) {
	nodes := []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}
	for _, test := range []struct {
		name  string
		nodes int
		given database.Options
		want  []string // one entry per node
	}{
		{"replica set", 2, nil, []string{"mongod rs0 27017", "mongod rs0 27017"}},
		{"3 nodes", 3, database.Options{"topology": "sharded"}, []string{
			"config config 27019, shard shard0 27018, mongos 27017",
			"config config 27019, shard shard1 27018, mongos 27017",
			"config config 27019, shard shard2 27018, mongos 27017",
		}},
		{"5 nodes", 5, database.Options{"topology": "sharded"}, []string{
			"config config 27019, shard shard0 27018, mongos 27017",
			"config config 27019, shard shard1 27018, mongos 27017",
			"config config 27019, shard shard2 27018, mongos 27017",
			"config config 27019, shard shard3 27018, mongos 27017",
			"config config 27019, shard shard4 27018, mongos 27017",
		}},
		{"production", 9, database.Options{"topology": "sharded", "shards": 3, "replicas": 3, "mongos": "n1"}, []string{
			"config config 27019, shard shard0 27018, mongos 27017",
			"config config 27019, shard shard1 27018",
			"config config 27019, shard shard2 27018",
			"shard shard0 27018", "shard shard1 27018", "shard shard2 27018",
			"shard shard0 27018", "shard shard1 27018", "shard shard2 27018",
		}},
		{"production on 3 nodes", 3, database.Options{"topology": "sharded", "shards": 3, "replicas": 3, "mongos": "n2"}, []string{
			"config config 27019, shard shard0 27018, shard shard1 27028, shard shard2 27038",
			"config config 27019, shard shard0 27018, shard shard1 27028, shard shard2 27038, mongos 27017",
			"config config 27019, shard shard0 27018, shard shard1 27028, shard shard2 27038",
		}},
	} {
		o, err := parseOptions(test.nodes, test.given)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := make([]string, test.nodes)
		for _, p := range o.planProcesses(nodes[:test.nodes]) {
			text := strings.Join(strings.Fields(fmt.Sprint(p.role, " ", p.set, " ", p.port)), " ")
			if got[p.node] != "" {
				text = ", " + text
			}
			got[p.node] += text
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
	}
}

func TestFixed(t *testing.T) {
	nodes := []string{"n1", "n2", "n3", "n4"}
	fixed := New().Fixed(nodes, database.Options{"topology": "sharded", "config_servers": 1})
	if len(fixed) != 1 || fixed["n1"] == "" {
		t.Errorf("fixed %v", fixed)
	}
	if fixed := New().Fixed(nodes, database.Options{"topology": "sharded", "replicas": 2, "config_servers": 3}); len(fixed) != 4 {
		t.Errorf("fixed %v", fixed)
	}
	if fixed := New().Fixed(nodes, nil); len(fixed) != 0 {
		t.Errorf("fixed %v", fixed)
	}
}

func TestSettings(t *testing.T) {
	s, err := parseSettings(map[string]string{PropURL: "mongodb://a:1,b/own?w=majority", PropRetry: "true", "fieldcount": "3"})
	if err != nil || s.database != "own" || !s.retry {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = parseSettings(map[string]string{PropURL: "mongodb://a:1"}); err != nil || s.database != databaseName {
		t.Errorf("%+v, %v", s, err)
	}
	for given, want := range map[string]string{
		"":                              "mongodb.url is missing",
		"mongodb.uri=x":                 "did you mean mongodb.url?",
		"mongodb.url=http://a":          "mongodb.url",
		"mongodb.url=mongodb://a/?w=-1": "mongodb.url",

		"mongodb.url=mongodb://a/?w=0":                  "mongodb.url: w=0: writes that no server acknowledges cannot be counted: set w=1, a larger number or majority",
		"mongodb.url=mongodb://a/own?W=0&journal=false": "cannot be counted",
		"mongodb.url=mongodb://a/?w=1&w=0":              "cannot be counted",
	} {
		p := make(map[string]string)
		if k, v, ok := strings.Cut(given, "="); ok {
			p[k] = v
		}
		if _, err := parseSettings(p); !errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

func TestClassify(t *testing.T) {
	command := func(code int32, name string, labels ...string) error {
		return mongo.CommandError{Code: code, Name: name, Message: name, Labels: labels}
	}
	for _, test := range []struct {
		err   error
		class string
		sent  load.Outcome
	}{
		{command(10107, "NotWritablePrimary"), "not_primary", load.NotDone},
		{command(11602, "InterruptedDueToReplStateChange"), "state_change", load.InDoubt},
		{command(91, "ShutdownInProgress"), "state_change", load.InDoubt},
		{command(50, "MaxTimeMSExpired"), "timeout", load.InDoubt},
		{command(13, "Unauthorized"), "unauthorized", load.NotDone},
		{mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 121}}}, "write_error", load.NotDone},
		{mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 6, Message: "Write results unavailable from failing to target a host in the shard shard1"}}},
			"shard_lost", load.InDoubt},
		{mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 11600}}}, "state_change", load.InDoubt},
		{mongo.WriteException{WriteErrors: []mongo.WriteError{{Code: 133}}}, "no_server", load.NotDone},
		{command(6, "HostUnreachable"), "shard_lost", load.InDoubt},
		{mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}, "write_concern", load.InDoubt},
		{topology.ServerSelectionError{Wrapped: context.DeadlineExceeded}, "no_server", load.NotDone},
		{context.DeadlineExceeded, "timeout", load.InDoubt},
		{context.Canceled, "canceled", load.InDoubt},
		{errors.New("strange"), "error", load.InDoubt},
	} {
		var e *load.OpError
		if err := classify(fmt.Errorf("wrapped: %w", test.err)); !errors.As(err, &e) || e.Class != test.class || e.Outcome != test.sent {
			t.Errorf("%v: %+v, want %s %v", test.err, e, test.class, test.sent)
		}
	}
}

// Connection properties as users pass them to YCSB.
func TestCorpusConnections(t *testing.T) {
	for file, want := range map[string]string{
		"mongodb-w0.properties":           "w=0: writes that no server acknowledges cannot be counted",
		"mongodb-w1-nojournal.properties": "",
	} {
		f, err := os.Open("../../../test/corpus/connections/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		entries, err := ycsb.ReadEntries(f)
		if err != nil {
			t.Fatal(err)
		}
		p := ycsb.CollectEntries(entries)
		_, err = parseSettings(p)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
