package ndb

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		err   string
	}{
		{nodes: 4},
		{nodes: 3, given: database.Options{"no_of_replicas": 1}},
		{nodes: 6, given: database.Options{"no_of_replicas": 3, "data_memory": "256MiB", "heartbeat_interval_db_db": "1s"}},
		{nodes: 3, err: "node groups are of 2"},
		{nodes: 50, err: "48 data nodes at most"},
		{nodes: 2, given: database.Options{"no_of_replica": 2}, err: "did you mean no_of_replicas?"},
		{nodes: 2, given: database.Options{"no_of_replicas": 5}, err: "from 1 to 4"},
		{nodes: 2, given: database.Options{"data_memory": "1kB"}, err: "1MiB or more"},
		{nodes: 2, given: database.Options{"heartbeat_interval_db_db": "5ms"}, err: "10ms or more"},
		{nodes: 2, given: database.Options{"time_between_global_checkpoints": "1m"}, err: "from 20ms to 32s"},
		{nodes: 2, given: database.Options{"transaction_deadlock_detection_timeout": "20ms"}, err: "50ms or more"},
		{nodes: 2, given: database.Options{"port": managePort}, err: "NDB itself"},
	} {
		_, err := parseOptions(test.nodes, test.given)
		if test.err == "" && err != nil || test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%d nodes, %v: %v, want %q", test.nodes, test.given, err, test.err)
		}
	}
}

func TestConfig(t *testing.T) {
	o, err := parseOptions(2, database.Options{"heartbeat_interval_db_db": "1500ms"})
	if err != nil {
		t.Fatal(err)
	}
	o.deadlock = o.deadlockTimeout(200 * time.Millisecond)
	hosts := testhost.Loopback(t, 3)
	var members []member
	for i, h := range hosts {
		s, err := mysql.NewServer(h, Name, o.port)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		members = append(members, member{s, i + 1})
	}
	want := `[ndbd default]
NoOfReplicas=2
DataMemory=83886080
SharedGlobalMemory=33554432
DiskPageBufferMemory=4194304
MaxNoOfExecutionThreads=2
NoOfFragmentLogFiles=4
InitFragmentLogFiles=SPARSE
ServerPort=2202
HeartbeatIntervalDbDb=1500
TransactionDeadlockDetectionTimeout=3200

[ndb_mgmd]
NodeId=49
HostName=A1
PortNumber=1186
DataDir=D1/mysql-ndb-management

[ndbd]
NodeId=1
HostName=A1
DataDir=D1/mysql-ndb/ndb

[ndbd]
NodeId=2
HostName=A2
DataDir=D2/mysql-ndb/ndb

[ndbd]
NodeId=3
HostName=A3
DataDir=D3/mysql-ndb/ndb
NodeGroup=65536

[mysqld]
NodeId=101
HostName=A1

[mysqld]
NodeId=102
HostName=A2

[mysqld]
NodeId=103
HostName=A3
`
	names := strings.NewReplacer(hosts[0].Dir(), "D1", hosts[1].Dir(), "D2", hosts[0].Addr(), "A1", hosts[1].Addr(), "A2", hosts[2].Dir(), "D3", hosts[2].Addr(), "A3")
	if d := cmp.Diff(want, names.Replace(o.config(hosts[0], members, 2))); d != "" {
		t.Error(d)
	}
	text := o.settings(members[1], nil, "A1:1186").Text("mysqld")
	for _, want := range []string{"ndbcluster = ON\n", "ndb-connectstring = A1:1186\n", "ndb-nodeid = 102\n", "server-id = 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// shown is the output of ndb_mgm, from the manual's example of adding nodes.
const shown = `Connected to Management Server at: 198.51.100.10:1186 (using cleartext)
Cluster Configuration
---------------------
[ndbd(NDB)]     7 node(s)
id=1    @198.51.100.1  (9.5.0-ndb-9.5.0, Nodegroup: 0, *)
id=2    @198.51.100.2  (mysql-8.0.44 ndb-8.0.44, starting, Nodegroup: 0)
id=3    @198.51.100.3  (9.5.0-ndb-9.5.0, no nodegroup)
id=4 (not connected, accepting connect from 198.51.100.4)
id=5    @198.51.100.5  (9.5.0-ndb-9.5.0, Nodegroup: 12)
id=6   (mysql-9.7.4 ndb-9.7.4, not started)
id=7   (mysql-9.7.4 ndb-9.7.4, Nodegroup: 1)

[ndb_mgmd(MGM)] 1 node(s)
id=49   @198.51.100.10  (9.5.0-ndb-9.5.0)

[mysqld(API)]   2 node(s)
id=101  @198.51.100.20  (9.5.0-ndb-9.5.0)
id=102 (not connected, accepting connect from 198.51.100.21)
`

func TestShow(t *testing.T) {
	got, err := parseShow(shown)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]peer{
		1: {1, "NDB", true, false, 0}, 2: {2, "NDB", true, true, 0}, 3: {3, "NDB", true, false, -1}, 4: {4, "NDB", false, false, -1},
		5: {5, "NDB", true, false, 12}, 6: {6, "NDB", true, true, -1}, 7: {7, "NDB", true, false, 1}, 49: {49, "MGM", true, false, -1}, 101: {101, "API", true, false, -1}, 102: {102, "API", false, false, -1},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(peer{})); d != "" {
		t.Error(d)
	}
	var words []string
	for id := 1; id <= 5; id++ {
		words = append(words, stateText(got[id]))
	}
	if d := cmp.Diff([]string{"started, node group 0", "starting", "started, no node group", "not connected", "started, node group 12"}, words); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "Unable to connect with connect string: nodeid=0,10.0.0.1:1186\n"} {
		if got, err := parseShow(bad); err == nil {
			t.Errorf("%q was parsed as %v", bad, got)
		}
	}
	if !created.MatchString("Connected to Management Server at: 198.51.100.10:1186\nNodegroup 1 created\n") {
		t.Error("a created node group was not detected")
	}
}

func FuzzShow(f *testing.F) {
	f.Add(shown)
	f.Fuzz(func(t *testing.T, text string) {
		peers, err := parseShow(text)
		if err == nil && len(peers) == 0 {
			t.Error("neither nodes nor an error")
		}
		for id, p := range peers {
			if p.id != id || p.group < -1 {
				t.Errorf("node %d was parsed as %+v", id, p)
			}
		}
	})
}

// A management node responds before and after a change of its configuration.
func TestKnows(t *testing.T) {
	peers, err := parseShow(shown)
	if err != nil {
		t.Fatal(err)
	}
	var members []member
	for i, h := range testhost.Loopback(t, 3) {
		s, err := mysql.NewServer(h, Name, mysql.Port)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		members = append(members, member{s, i + 1})
	}
	if err := checkConfigured(peers, members[:2]); err != nil {
		t.Error(err)
	}
	if err := checkConfigured(peers, members); err == nil || !strings.Contains(err.Error(), "node 103") {
		t.Errorf("an unconfigured SQL node: %v", err)
	}
}

func TestUsable(t *testing.T) {
	for want, seen := range map[string]map[string]string{
		"has no NDB":           {},
		"can use no data node": {readyNodes: "0"},
		"":                     {readyNodes: "4"},
	} {
		err := checkUsable("n1", seen)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", seen, err, want)
		}
	}
}

func TestColumn(t *testing.T) {
	for size, want := range map[int]string{1: "VARBINARY(255)", 100: "VARBINARY(255)", 1000: "VARBINARY(1000)", 5000: "MEDIUMBLOB"} {
		if got := column(size); got != want {
			t.Errorf("fields of %d bytes are %s, want %s", size, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"MySQL distrib mysql-8.0.44 ndb-8.0.44, for Linux (x86_64)":                            "8.0.44",
		"ndbmtd  Ver 9.5.0-cluster for Linux on x86_64 (MySQL Cluster Community Server - GPL)": "9.5.0",
		"ndbmtd: command not found": "",
	} {
		if got := Recipe.Version(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestConformance runs if NDB's programs are installed.
func TestConformance(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe), testkit.Root)
	var client host.Host
	dbtest.Run(t, dbtest.Config{
		About: About,
		New: func() database.Database {
			n := New()
			n.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return client.Dial(ctx, network, addr)
			}
			return n
		},
		Hosts: func(t testing.TB, n int) []host.Host {
			hosts := testhost.Bridged(t, n)
			client = hosts[n-1]
			return hosts
		},
		// Fields have the maximum length that the suite writes, and are BLOBs. NDB makes them wait on a shared machine.
		Properties: map[string]string{"fieldlength": "65536", mysql.PropTimeout: "60000"},
		// An odd number of spare nodes: two that joined form a node group and stay, so that the last one joins and
		// leaves.
		// A join restarts every process of the cluster, and each restart of a data node waits for about fifteen global
		// checkpoints: here they are ten times as frequent as by default.
		Options: database.Options{"time_between_global_checkpoints": "200ms"},
		Nodes:   4, Spare: 3, Port: dataPort, Survives: true, Timeout: 10 * time.Minute,
		BadOptions: []database.Options{{"no_of_replicas": 3}, {"data_memory": "1kB"}, {"port": managePort}},
	})
}
