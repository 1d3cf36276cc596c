package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/redis"
)

// Settings of an emulated cloud are rejected on an external cluster, where they would have no effect.
func TestClusterMistakes(t *testing.T) {
	const valid = "name: x\ndatabase: {name: redis, cluster: {servers: [\"10.0.0.1:6379\"]}}\nworkload: a\n"
	if e, err := Parse("experiment.yaml", []byte(valid), nil, false); err != nil || e.NeedsLab() || len(e.DataNodes()) != 0 {
		t.Errorf("valid file: lab %v, nodes %v, %v", e.NeedsLab(), e.DataNodes(), err)
	}
	servers := `servers: ["10.0.0.1:6379"]`
	for _, tt := range []struct{ old, text, want string }{
		{"workload: a", "workload: a\ntopology: azure8", "topology has no effect"},
		{"workload: a", "workload: a\nscale: 2", "scale has no effect"},
		{"workload: a", "workload: a\ndrift: {steps: [{at: 1s, scale: 2}]}", "drift has no effect"},
		{"workload: a", "workload: a\nmachines: machines.yaml", "skerry run FILE --on machines.yaml"},
		{"workload: a", "workload: a\nparallel: 2", "would disturb each other"},
		{"workload: a", "workload: a\nevents: [{at: 1s, kill: n1}]", "n1"},
		{"workload: a", "workload: a\nevents: [{at: 1s, link_down: {ids: [a~b]}}]", "a~b"},
		{"workload: a", "workload: a\nevents: [{at: 1s, join: spare}]", "cannot be chosen by name"},
		{"workload: a", "workload: a\nevents: [{at: 1s, leave: {count: 1}}]", "the cluster has no command leave"},
		{"workload: a", "workload: a\nevents: [{at: 1s, leave: {count: 1, manner: abrupt}}]", "decides how servers leave"},
		{"workload: a", "workload: a\nevents: [{at: 1s, join: {count: 1, choose: random}}]", "choose the servers"},
		{"workload: a", "workload: a\nevents: [{at: 1s, command: 'x {{(index .Nodes 1).Addr}}'}]", "index out of range"},
		{servers, servers + ", join: grow, leave: shrink", "join needs servers_from"},
		{servers, "servers_from: list, join: grow", "join needs its opposite"},
		{servers, "servers_from: list, up: start, join: 'grow {{.Cont}}'", "may contain {{.Count}} only"},
		{servers, "servers: [10.0.0.1]", `"10.0.0.1" is not HOST:PORT`},
		{servers, "servers: ['a:1', 'a:1']", "server a:1 is given twice"},
		{servers, "timeout: 1m", "give servers, or servers_from"},
		{servers, servers + ", down: stop", "down without up"},
		{servers, servers + ", servers_from: list", "servers_from"},
		{"redis,", "redis, options: {masters: 3},", "options"},
		{"redis,", "redis, count: 3,", "count"},
		{"name: redis,", "name: redis, exec: mydb.yaml,", "exec"},
	} {
		_, err := Parse("experiment.yaml", []byte(strings.Replace(valid, tt.old, tt.text, 1)), nil, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// Mistakes of a login name the line, and never quote it: it may contain a password.
func TestAccessMistakes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SKERRY_TEST_PASSWORD", "correct horse")
	for name, text := range map[string]string{"password": "horse\n", "empty": "", "ca.pem": "no certificate"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	databases := map[string]database.Database{"redis": redis.New()}
	validate := func(cluster string, sets ...string) Validation {
		file := filepath.Join(dir, "experiment.yaml")
		text := "name: x\ndatabase:\n  name: redis\n  cluster:\n    servers: ['10.0.0.1:6379']\n" + cluster + "\nworkload: a\n"
		e, err := Parse(file, []byte(text), sets, false)
		return validate(file, e, err, databases)
	}
	for _, tt := range []struct{ cluster, want string }{
		{"    password: hunter2", "6:15: database.cluster.password: want the variable or the file"},
		{"    password: {value: hunter2}", "6:16: database.cluster.password: want the variable or the file"},
		{"    password: {env: A, file: B}", "6:16: database.cluster.password: want the variable or the file"},
		{"    user: u\n    password: {env: SKERRY_TEST_MISSING}", "7:16: database.cluster.password: variable SKERRY_TEST_MISSING is not set"},
		{"    password: {file: missing}", "6:16: database.cluster.password: read password: open " + dir},
		{"    password: {file: empty}", "6:16: database.cluster.password: file " + dir},
		{"    tls:\n      ca: ca.pem", "7:11: database.cluster.tls.ca: " + dir},
		{"    tls: {key: k.pem}", "6:16: database.cluster.tls.key: a key needs its certificate"},
		{"    tls: {certificate: c.pem}", "6:24: database.cluster.tls.certificate: a certificate needs its key"},
		{"    tls: {cipher: x}", "unknown key \"cipher\""},
		{"    password: hunter2\n    tls: {cipher: x}", "unknown key \"cipher\""},
		{"    properties:\n      redis.timeout: 500\n      redis.password: hunter2", "8:7: database.cluster.properties.redis.password: a password in the file"},
		{"    user: u\n    properties: {redis.user: v}", "7:18: database.cluster.properties.redis.user: the user is given twice"},
	} {
		v := validate(tt.cluster)
		if v.Err() == nil || !strings.Contains(v.Err().Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.cluster, v.Err(), tt.want)
		} else if strings.Contains(fmt.Sprintf("%v %+v", v.Err(), v.Problems), "hunter2") {
			t.Errorf("%s: the password was printed: %v", tt.cluster, v.Err())
		}
	}
	v := validate("", "database.cluster.password=hunter2")
	if v.Err() == nil || strings.Contains(v.Err().Error(), "hunter2") {
		t.Errorf("--set: %v", v.Err())
	}
	v = validate("    user: skerry\n    password: {env: SKERRY_TEST_PASSWORD}\n    tls: true")
	var plan strings.Builder
	if err := v.Err(); err != nil {
		t.Fatal(err)
	}
	if err := v.Describe(&plan, true); err != nil {
		t.Fatal(err)
	}
	if want := "user skerry, password from $SKERRY_TEST_PASSWORD, TLS with the system's authorities"; !strings.Contains(plan.String(), want) {
		t.Errorf("%s: want %q", plan.String(), want)
	}
	if got, want := v.FirstCommand(), "password from $SKERRY_TEST_PASSWORD"; got != want {
		t.Errorf("a page of another machine: got %q, want %q", got, want)
	}
	text, err := v.experiment.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := `"user":"skerry","password":{"env":"SKERRY_TEST_PASSWORD"},"tls":{"enabled":true}`; !strings.Contains(string(text), want) {
		t.Errorf("the recorded experiment is %s, want %s", text, want)
	}
}
