package custom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/database/redis"
	"skerry/internal/load"
)

// httpDefinition describes the clients of servers that Skerry does not start.
const httpDefinition = "name: demo\ncan: {scan: true}\nclient: {protocol: http-kv}\n"

// onServers is a database that a file describes, on servers that Skerry did not start.
func onServers(t *testing.T, definition string, servers ...string) *external.Database {
	t.Helper()
	db, err := NewKind(builtins{"redis": redis.New()}).Describe("/dir/mydb.yaml", []byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	d, err := external.New(db, external.ClusterSpec{Servers: servers}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Servers of http-kv that share the keys: a trial's table is counted and dropped, also after a kill, and the records of
// others stay.
func TestHTTPServersOfTheUser(t *testing.T) {
	addrs, servers := startHTTP(t, 3)
	for _, s := range servers {
		s.rows["/usertable/user1"] = map[string][]byte{"a": []byte("x")}
	}
	d := onServers(t, httpDefinition, addrs...)
	root := t.TempDir()
	const records = 3*scanPage + 1 // several pages on each server
	start := func(name string) (*external.Scratch, database.Cluster) {
		scratch, err := external.NewScratch(t.Context(), root, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Start(t.Context(), database.Env{Scratch: scratch.Dir()})
		if err != nil {
			t.Fatal(err)
		}
		client, err := d.Open(t.Context(), c.Properties())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for i := range records {
			if err := client.Insert(t.Context(), c.Properties()[database.PropTable], fmt.Sprint("user", i), []load.Field{{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := c.Count(t.Context()); n != records || err != nil {
			t.Errorf("the table has %d records, want %d: %v", n, records, err)
		}
		return scratch, c
	}
	onlyOthers := func() {
		for i, s := range servers {
			if len(s.rows) != 1 || s.rows["/usertable/user1"] == nil {
				t.Errorf("server %d has %d records, want that of others", i, len(s.rows))
			}
		}
	}
	_, c := start("ended")
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	onlyOthers()
	scratch, _ := start("killed")
	if err := scratch.Release(t.Context()); err != nil { // as the kernel does when the process dies
		t.Fatal(err)
	}
	all := map[string]database.Database{database.Exec: NewKind(builtins{})}
	if did, err := external.Sweep(t.Context(), root, all); len(did) != 1 || err != nil {
		t.Errorf("the next run did %v: %v", did, err)
	}
	onlyOthers()
}

// Clients that ignore the table are refused before there is a table: dropping it would drop all records.
func TestClientsThatMixTables(t *testing.T) {
	h := &httpRecords{rows: map[string]map[string][]byte{"/t/user1": {"a": []byte("x")}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/t" + strings.TrimPrefix(r.URL.Path, "/"+strings.Split(r.URL.Path, "/")[1])
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	_, err := onServers(t, httpDefinition, strings.TrimPrefix(s.URL, "http://")).Start(t.Context(), database.Env{Scratch: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "the clients do not keep tables apart") {
		t.Errorf("%v, want a refusal", err)
	}
	if len(h.rows) != 1 || h.rows["/t/user1"] == nil {
		t.Errorf("the server has %v, and had a record of others", h.rows)
	}
}

// The templates of properties see the servers as members, with their own ports.
func TestPropertiesOfServers(t *testing.T) {
	const definition = "name: demo\noptions: {port: 7000}\ncan: {scan: true}\nclient:\n  program: [./c, go]\n" +
		"  properties: {servers: '{{hostports .Nodes .Options.port \" \"}}', first: '{{.Addr}}', names: '{{names .Members \",\"}}'}\n"
	d := onServers(t, definition, "10.0.0.1:71", "db.example:72")
	got := d.ServerProperties([]string{"10.0.0.1:71", "db.example:72"}, "t")
	for name, want := range map[string]string{
		"servers": "10.0.0.1:71 db.example:72", "first": "10.0.0.1", "names": "10.0.0.1:71,db.example:72", PropProgram: `["/dir/c","go"]`,
	} {
		if got[name] != want {
			t.Errorf("property %s is %q, want %q", name, got[name], want)
		}
	}
	if all := d.Commands(); len(all) != 1 || all[0] != "client.program: ./c go" {
		t.Errorf("runs %v, want the client's program", all)
	}
	redisOn := onServers(t, "name: demo\nclient: {protocol: redis, properties: {redis.prefix: mine, redis.timeout: \"5000\"}}\n", "a:1")
	got = redisOn.ServerProperties([]string{"a:1"}, "t")
	if got[redis.PropHosts] != "a:1" || got[redis.PropPrefix] == "mine" || got["redis.timeout"] != "5000" {
		t.Errorf("properties %v: the servers and the table are not the user's", got)
	}
}

// What makes no sense is refused before anything connects.
func TestMistakesOnServers(t *testing.T) {
	kind := NewKind(builtins{"redis": redis.New()})
	for _, tt := range []struct{ definition, want string }{
		{"name: demo\nclient: {program: [./c]}\n", "clients of exec:demo have none"},
		{"name: demo\nclient: {protocol: http-kv}\n", "clients of exec:demo have none"},
		{"name: demo\nclient: {protocol: rdis}\n", "did you mean redis?"},
		{"name: demo\n", "client is missing"},
	} {
		db, err := kind.Describe("/dir/mydb.yaml", []byte(tt.definition))
		if err == nil {
			_, err = external.New(db, external.ClusterSpec{Servers: []string{"a:1"}}, t.TempDir())
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.definition, err, tt.want)
		}
	}
	// A lab needs more of the file than servers that Skerry did not start.
	db, err := kind.Describe("/dir/mydb.yaml", []byte(httpDefinition))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Check(1, nil)
	for _, key := range []string{"server", "count", "clear"} {
		if err == nil || !strings.Contains(err.Error(), "/dir/mydb.yaml:1:1: "+key+" is missing") {
			t.Errorf("a lab: %v, want that %s is missing", err, key)
		}
	}
	// Access belongs to built-in clients. A password of the file would be part of the record.
	d := onServers(t, "name: demo\nclient: {protocol: redis, properties: {redis.password: x}}\n", "a:1")
	if err := d.CheckAccess()["properties"]; err == nil || !strings.Contains(err.Error(), "redis.password of exec:demo: a password in the file") {
		t.Errorf("a password in the definition: %v", err)
	}
	noLogin, err := external.New(mustDescribe(t, httpDefinition),
		external.ClusterSpec{Servers: []string{"a:1"}, Access: database.Access{User: "u"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := noLogin.CheckAccess()[""]; err == nil || !strings.Contains(err.Error(), "clients of exec:demo do not log in") {
		t.Errorf("a user for http-kv: %v", err)
	}
	if _, err := noLogin.ServerVersion(t.Context(), "a:1", map[string]string{PropProtocol: HTTPKV}); err == nil {
		t.Error("http-kv has no version")
	}
}

func mustDescribe(t *testing.T, definition string) database.Database {
	t.Helper()
	db, err := NewKind(builtins{}).Describe("/dir/mydb.yaml", []byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	return db
}
