package mongodb

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
)

// replies are those of MongoDB's documentation, by command.
//
//go:embed testdata/replies.json
var replies []byte

func documented(t *testing.T, name string) bson.D {
	t.Helper()
	var all bson.Raw
	if err := bson.UnmarshalExtJSON(replies, false, &all); err != nil {
		t.Fatal(err)
	}
	var d bson.D
	if err := all.Lookup(name).Unmarshal(&d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// talk is a driver's client of a server with predefined responses, and the commands recorded by the driver's own
// monitoring.
func talk(t *testing.T, answers ...bson.D) (*mongo.Client, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var next int
	f := mustServe(t, "127.0.0.1:0", func(command bson.D) bson.D {
		mu.Lock()
		defer mu.Unlock()
		if isHello(command) || command[0].Key == "endSessions" || next >= len(answers) {
			return hello(bson.E{Key: "ismaster", Value: true})
		}
		next++
		return answers[next-1]
	})
	var seen []string
	client, err := mongo.Connect(drv.Client().SetHosts([]string{f.listener.Addr().String()}).SetDirect(true).
		SetRetryReads(false).SetRetryWrites(false).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e.DatabaseName+" "+plain(e.Command))
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disconnect(client); err != nil {
			t.Error(err)
		}
	})
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// plain is a command as JSON without the driver's additions.
func plain(raw bson.Raw) string {
	var d bson.D
	if err := bson.Unmarshal(raw, &d); err != nil {
		return err.Error()
	}
	var own bson.D
	for _, e := range d {
		switch e.Key {
		case "lsid", "$db", "$clusterTime", "$readPreference":
		default:
			own = append(own, e)
		}
	}
	text, err := bson.MarshalExtJSON(own, false, false)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func expect(t *testing.T, seen func() []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, seen()); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
}

func TestInitiate(t *testing.T) {
	c, seen := talk(t, done())
	config := setConfig{Name: "rs0", Version: 1, Members: []memberConfig{
		{ID: 0, Host: "a:1", Priority: 2, Votes: 1}, {ID: 1, Host: "b:1", Votes: 0, Hidden: true},
	}, Settings: bson.M{"electionTimeoutMillis": 2000}}
	if err := initiateSet(t.Context(), c, config); err != nil {
		t.Fatal(err)
	}
	expect(t, seen, `admin {"replSetInitiate":{"_id":"rs0","version":1,"members":[`+
		`{"_id":0,"host":"a:1","priority":2.0,"votes":1},{"_id":1,"host":"b:1","priority":0.0,"votes":0,"hidden":true}],`+
		`"settings":{"electionTimeoutMillis":2000}}}`)
}

func TestStatus(t *testing.T) {
	c, seen := talk(t, documented(t, "replSetGetStatus"), serverError(94, "NotYetInitialized", "no replset config has been received"))
	s, err := readStatus(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"m1.example.net:27017", "m2.example.net:27017", "m3.example.net:27017"}
	if s.primary() != hosts[0] || s.memberState(hosts[1]) != "SECONDARY" || s.checkServing(hosts) != nil {
		t.Errorf("%+v: primary %s", s, s.primary())
	}
	if err := s.checkServing(hosts[:2]); !errors.Is(err, database.ErrNotReady) {
		t.Errorf("an extra member is accepted: %v", err)
	}
	if err := s.checkServing(append(hosts, "m4:1")); !errors.Is(err, database.ErrNotReady) {
		t.Errorf("a missing member is accepted: %v", err)
	}
	s.Members[2].Health = 0
	if err := s.checkServing(hosts); !errors.Is(err, database.ErrNotReady) {
		t.Errorf("a member that is down is accepted: %v", err)
	}
	if _, err := readStatus(t.Context(), c); !isRetryable(err) {
		t.Errorf("a set that has not been formed: %v", err)
	}
	expect(t, seen, `admin {"replSetGetStatus":1}`, `admin {"replSetGetStatus":1}`)
}

// Unchanged fields are sent back as received, the version increases, and the term is left to the primary.
func TestReconfigure(t *testing.T) {
	c, seen := talk(t, documented(t, "replSetGetConfig"), done())
	if err := addMember(t.Context(), c, memberConfig{Host: "m4:1", Priority: 1, Votes: 1}); err != nil {
		t.Fatal(err)
	}
	sent := seen()[1]
	for _, part := range []string{
		`"version":4`, `{"_id":5,"host":"m4:1","priority":1.0,"votes":1}`, `"tags":{"dc":"east"}`, `"electionTimeoutMillis":10000`,
		`"writeConcernMajorityJournalDefault":true`, `"protocolVersion":1`,
	} {
		if !strings.Contains(sent, part) {
			t.Errorf("%s lacks %s", sent, part)
		}
	}
	if strings.Contains(sent, `"term"`) {
		t.Errorf("%s contains a term", sent)
	}

	c, seen = talk(t, documented(t, "replSetGetConfig"), done())
	if err := removeMember(t.Context(), c, "m2.example.net:27017"); err != nil {
		t.Fatal(err)
	}
	if sent := seen()[1]; strings.Contains(sent, "m2.example") || !strings.Contains(sent, "m3.example") {
		t.Errorf("%s", sent)
	}

	c, _ = talk(t, documented(t, "replSetGetConfig"), serverError(308, "CurrentConfigNotCommittedYet", "Cannot run replSetReconfig because the current config is not yet committed"))
	if err := removeMember(t.Context(), c, "m2.example.net:27017"); !isRetryable(err) {
		t.Errorf("no retry after %v", err)
	}
	c, _ = talk(t, documented(t, "replSetGetConfig"), serverError(13, "Unauthorized", "not authorized"))
	if err := removeMember(t.Context(), c, "m2.example.net:27017"); err == nil || isRetryable(err) {
		t.Errorf("retried after %v", err)
	}
}

// A member is added to a set with the maximum number of voters.
func TestEighthVoter(t *testing.T) {
	config := setConfig{Name: "rs0", Version: 1}
	for i := range maxVoters {
		config.Members = append(config.Members, memberConfig{ID: i, Host: shardName(i), Votes: 1, Priority: 1})
	}
	c, seen := talk(t, done(bson.E{Key: "config", Value: config}), done())
	if err := addMember(t.Context(), c, memberConfig{Host: "m8:1", Priority: 1, Votes: 1}); err != nil {
		t.Fatal(err)
	}
	if sent := seen()[1]; !strings.Contains(sent, `{"_id":7,"host":"m8:1","priority":0.0,"votes":0}`) {
		t.Errorf("%s", sent)
	}
}

func TestStepDown(t *testing.T) {
	c, seen := talk(t, done())
	if err := stepDown(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	expect(t, seen, `admin {"replSetStepDown":60,"secondaryCatchUpPeriodSecs":10}`)
}

func TestShards(t *testing.T) {
	c, seen := talk(t, documented(t, "addShard"), documented(t, "listShards"), done(), done())
	if err := addShard(t.Context(), c, "shard0", []string{"a:1", "b:1"}); err != nil {
		t.Fatal(err)
	}
	list, err := listShards(t.Context(), c)
	if err != nil || len(list) != 3 || list[1].ID != "shard02" || list[1].State != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := shardCollection(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	expect(t, seen, `admin {"addShard":"shard0/a:1,b:1","name":"shard0"}`, `admin {"listShards":1}`,
		`admin {"enableSharding":"ycsb"}`, `admin {"shardCollection":"ycsb.usertable","key":{"_id":"hashed"}}`)
}

func TestRemoveShard(t *testing.T) {
	c, seen := talk(t, documented(t, "removeShard started"), documented(t, "removeShard ongoing"), done(),
		documented(t, "removeShard completed"), serverError(70, "ShardNotFound", "Shard bristol01 does not exist"))
	ctx := t.Context()
	r, err := removeShard(ctx, c, "bristol01")
	if err != nil || r.State != "started" || len(r.ToMove) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = removeShard(ctx, c, "bristol01"); err != nil || r.State != "ongoing" || r.Remaining.Chunks != 2 || r.Remaining.DBs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := movePrimary(ctx, c, "fizz", "shard0"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if r, err = removeShard(ctx, c, "bristol01"); err != nil || r.State != completed {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if got := seen(); got[0] != `admin {"removeShard":"bristol01"}` || got[2] != `admin {"movePrimary":"fizz","to":"shard0"}` {
		t.Errorf("%q", got)
	}
}
