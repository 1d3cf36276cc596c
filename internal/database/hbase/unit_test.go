package hbase

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		check func(options) bool
		err   string
	}{
		{nodes: 3, check: func(o options) bool {
			return o.replication == 2 && o.wal == "asyncfs" && o.storage == "hdfs" && o.regions == 10
		}},
		{nodes: 1, check: func(o options) bool { return o.replication == 1 }},
		{nodes: 3, given: database.Options{"storage": "directory"}, check: func(o options) bool { return o.wal == "filesystem" }},
		{nodes: 3, given: database.Options{"durability": "async_wal"}, check: func(o options) bool { return o.durability == "ASYNC_WAL" }},
		{nodes: 3, given: database.Options{"regionserver_heap": "512MiB"}, check: func(o options) bool { return o.regionServer == 512*mib }},
		{nodes: 3, given: database.Options{"zookeeper_session_timeout": "6s"}, check: func(o options) bool { return o.session == 6*time.Second }},
		{nodes: 3, given: database.Options{"region": 3}, err: "did you mean regions?"},
		{nodes: 3, given: database.Options{"storage": "tape"}, err: "one of hdfs, directory"},
		{nodes: 3, given: database.Options{"replication": 4}, err: "needs as many nodes, there are 3"},
		{nodes: 3, given: database.Options{"replication": 2, "storage": "directory"}, err: "storage: directory has none"},
		{nodes: 3, given: database.Options{"wal": "asyncfs", "storage": "directory"}, err: "needs storage: hdfs"},
		{nodes: 3, given: database.Options{"zookeeper_session_timeout": "1s"}, err: "below 4s"},
		{nodes: 3, given: database.Options{"zookeeper_session_timeout": 6000}, err: "a time with its unit"},
		{nodes: 3, given: database.Options{"master_heap": "1MiB"}, err: "below"},
		{nodes: 3, given: database.Options{"durability": "maybe"}, err: "one of use_default"},
		{nodes: 3, given: database.Options{"handlers": 0}, err: "from 1 to 1000"},
	} {
		o, err := parseOptions(test.nodes, test.given)
		switch {
		case test.err == "" && (err != nil || !test.check(o)):
			t.Errorf("%d nodes, %v: %+v, %v", test.nodes, test.given, o, err)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%d nodes, %v: error %v, want %q", test.nodes, test.given, err, test.err)
		}
	}
}

func TestFixed(t *testing.T) {
	got := New().Fixed([]string{"n1", "n2"}, database.Options{"storage": "directory"})
	if diff := cmp.Diff(map[string]string{"n1": "the master and ZooKeeper are there"}, got); diff != "" {
		t.Error(diff)
	}
	if got := New().Fixed(nil, nil); got != nil {
		t.Errorf("without nodes, %v are fixed", got)
	}
}

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		given map[string]string
		want  func(settings) bool
		err   string
	}{
		{given: map[string]string{PropQuorum: "a,b:2182"}, want: func(s settings) bool { return s.quorum == "a:2181,b:2182" && s.retries == 15 }},
		{given: map[string]string{PropQuorum: "a", PropRetries: "0", PropTimeout: "500", PropFamily: "cf", "fieldcount": "3"},
			want: func(s settings) bool {
				return s.retries == 0 && s.timeout == 500*time.Millisecond && s.family == "cf"
			}},
		{given: map[string]string{}, err: "hbase.zookeeper.quorum is missing"},
		{given: map[string]string{PropQuorum: "a", "hbase.retrys": "1"}, err: "did you mean hbase.retries?"},
		{given: map[string]string{PropQuorum: "a", PropPause: "soon"}, err: "whole number"},
		{given: map[string]string{PropQuorum: "a", PropHeap: "1"}, err: "from 32"},
	} {
		s, err := parseSettings(test.given)
		switch {
		case test.err == "" && (err != nil || !test.want(s)):
			t.Errorf("%v: %+v, %v", test.given, s, err)
		case test.err != "" && (!errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%v: error %v, want %q", test.given, err, test.err)
		}
	}
}

// parseXML parses a settings file like Hadoop.
func parseXML(t *testing.T, text string) map[string]string {
	t.Helper()
	var file struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	values := make(map[string]string)
	for _, p := range file.Property {
		if _, twice := values[p.Name]; twice {
			t.Errorf("%s is set twice", p.Name)
		}
		values[p.Name] = p.Value
	}
	return values
}

func testSite(t *testing.T, given database.Options) site {
	t.Helper()
	o, err := parseOptions(3, given)
	if err != nil {
		t.Fatal(err)
	}
	return site{options: o, master: "10.0.0.1", addr: "10.0.0.2", dir: "/n2/hbase", shared: "/n1/<shared>", exclude: "/n1/exclude"}
}

func TestSites(t *testing.T) {
	for _, test := range []struct {
		given      database.Options
		core, hdfs map[string]string
		hbase      map[string]string
	}{
		{
			given: database.Options{"replication": 3, "handlers": 7, "zookeeper_session_timeout": "30s"},
			core:  map[string]string{"fs.defaultFS": "hdfs://10.0.0.1:8020", "fs.file.impl": ""},
			hdfs:  map[string]string{"dfs.replication": "3", "dfs.datanode.address": "10.0.0.2:9866", "dfs.namenode.rpc-address": "10.0.0.1:8020", "dfs.hosts.exclude": "/n1/exclude"},
			hbase: map[string]string{"hbase.rootdir": "hdfs://10.0.0.1:8020/hbase", "hbase.regionserver.handler.count": "7",
				"zookeeper.session.timeout": "30000", "hbase.zookeeper.quorum": "10.0.0.1", "hbase.regionserver.hostname": "10.0.0.2", "hbase.wal.provider": "asyncfs"},
		},
		{
			given: database.Options{"storage": "directory"},
			core:  map[string]string{"fs.defaultFS": "", "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"},
			hbase: map[string]string{"hbase.rootdir": "file:///n1/<shared>", "hbase.wal.provider": "filesystem"},
		},
	} {
		s := testSite(t, test.given)
		for name, pair := range map[string][2]map[string]string{
			"core": {test.core, parseXML(t, siteXML(s.coreSite()))}, "hdfs": {test.hdfs, parseXML(t, siteXML(s.hdfsSite()))},
			"hbase": {test.hbase, parseXML(t, siteXML(s.hbaseSite()))},
		} {
			for k, want := range pair[0] {
				if got := pair[1][k]; got != want {
					t.Errorf("%v: %s-site.xml: %s is %q, want %q", test.given, name, k, got, want)
				}
			}
		}
	}
	if z := testSite(t, database.Options{"zookeeper_session_timeout": "60s"}).zooCfg(); !strings.Contains(z, "maxSessionTimeout=60000\n") {
		t.Errorf("ZooKeeper does not grant a session timeout of 60 s:\n%s", z)
	}
}

func TestHosts(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	joiner := testhost.Loopback(t, 4)[3]
	for _, test := range []struct {
		own  host.Host
		want []string
	}{
		{nodes[1], []string{"127.0.0.1 localhost", nodes[0].Addr() + " n1", nodes[1].Addr() + " n2", nodes[1].Addr() + " machine"}},
		{joiner, []string{joiner.Addr() + " n4", nodes[2].Addr() + " n3"}},
	} {
		got := hostsText(test.own, "machine", nodes)
		for _, line := range test.want {
			if strings.Count(got, line+"\n") != 1 {
				t.Errorf("hosts of %s: not once %q in\n%s", test.own.Name(), line, got)
			}
		}
	}
}

func TestSplits(t *testing.T) {
	if diff := cmp.Diff([]string{"user3249", "user5499", "user7749"}, splitKeys(4)); diff != "" {
		t.Error(diff)
	}
	if got := splitKeys(1); len(got) != 0 {
		t.Errorf("one region is split at %v", got)
	}
}

func TestServerOn(t *testing.T) {
	servers := []string{"10.0.0.1,16020,5", "10.0.0.2,16020,7", "10.0.0.2,16020,9", "10.0.0.2,16020,x", "10.0.0.22,16020,99", "strange"}
	for addr, want := range map[string]string{"10.0.0.1": "10.0.0.1,16020,5", "10.0.0.2": "10.0.0.2,16020,9", "10.0.0.3": "", "strange": ""} {
		if got := serverOn(servers, addr); got != want {
			t.Errorf("on %s: %q, want %q", addr, got, want)
		}
	}
}

func TestUneven(t *testing.T) {
	nodes := testhost.Loopback(t, 2)
	a, b := nodes[0].Addr()+",16020,1", nodes[1].Addr()+",16020,1"
	for _, test := range []struct {
		places map[string]int64
		want   bool
	}{
		{map[string]int64{a: 5, b: 5}, false},
		{map[string]int64{a: 6, b: 5}, false},
		{map[string]int64{a: 7, b: 5}, true},
		{map[string]int64{a: 3}, true},
		{map[string]int64{a: 1, b: 1, "10.9.9.9,16020,1": 1}, true},
		{nil, false},
	} {
		if got := isUneven(test.places, []string{a, b}, nodes); got != test.want {
			t.Errorf("%v: uneven is %v", test.places, got)
		}
	}
}
