package experiment

import (
	"strings"
	"testing"

	"skerry/internal/base/strict"
)

const beside = `
name: beside
topology: azure8
client: Singapore
database: redis
workloads:
  - {name: readers, workload: {name: c, threads: 30}}
  - name: writers
    client: {site: Sydney, cpu: 1}
    workload: {name: a, threads: 4, properties: {readproportion: "0", updateproportion: "1"}}
matrix:
  workloads[0].workload.threads: [1, 30]
assert: ["readers.p99 < 1s", "writers.update.p95 < 1s", "writers.goodput > 1/s", "goodput > 2/s"]
`

func TestPools(t *testing.T) {
	e := parse(t, beside)
	cells := e.Plan()
	if len(cells) != 2 {
		t.Fatalf("%d cells, want 2", len(cells))
	}
	for _, c := range cells {
		if got := c.Parameters["workload"]; got != "readers+writers" {
			t.Errorf("the workload is called %v, want readers+writers", got)
		}
	}
	pools := e.Pools()
	if got := e.ClientNodes(); strings.Join(got, " ") != "client client-writers" {
		t.Errorf("the clients are %v, want client and client-writers", got)
	}
	if p := e.AuditedPools(); len(p) != 1 || p[0].Name != "writers" {
		t.Errorf("the audit covers %+v, want only writers", p)
	}
	cloud, err := e.Cloud()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range cloud.Nodes {
		if n.Name == pools[1].Node(e) && (n.Site != "Sydney" || n.CPU != 1) {
			t.Errorf("the writers' client is at %s with %g cores, want Sydney, 1", n.Site, n.CPU)
		}
	}
	for _, l := range cloud.Links {
		if l.A == "client" && l.B == "client-writers" || l.B == "client" && l.A == "client-writers" {
			t.Errorf("link %s joins clients", l.ID)
		}
	}
	text, err := e.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("again.json", text, nil, false); err != nil {
		t.Errorf("the formatted experiment is invalid: %v", err)
	}
}

// A single workload is one unnamed pool, at the experiment's client.
func TestSinglePool(t *testing.T) {
	e := parse(t, small)
	if p := e.Pools(); len(p) != 1 || p[0].Name != "" || p[0].Node(e) != e.ClientNode() {
		t.Errorf("pools %+v, want one without a name", p)
	}
}

func TestInvalidPools(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"name of figure":      {"name: readers", "name: read", `workload name "read" is the name of a figure`},
		"same name":           {"name: readers", "name: writers", `duplicate workload name "writers"`},
		"records":             {"name: c,", "name: c, records: 50,", "share one table"},
		"fields":              {"threads: 30}", `threads: 30, properties: {fieldcount: "3"}}`, "this workload has other records"},
		"two inserting pools": {"name: c, threads: 30}}", "name: d}}\n  - {name: more, workload: d}", "inserts the same keys"},
		"two audited pools":   {"name: c, threads: 30}}\n", "name: a}}\n", "write the same records"},
		"nowhere":             {"site: Sydney", "site: Atlantis", "cannot be placed"},
		"unknown pool":        {"readers.p99", "reader.p99", `did you mean "readers"?`},
		"whose":               {"readers.p99", "read.p99", "write readers.read.p99"},
		"no such figure":      {"readers.p99", "readers.update.p99", "the workload has no operation update"},
		"none":                {beside[strings.Index(beside, "workloads:"):], "", "workload is empty"},
		"tree":                {"name: c, threads: 30", "name: mdtest", "cannot run next to others"},
		"probes":              {"threads: 4,", "threads: 4, probes: {every: 1ms},", "below the minimum"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(beside, tt.from, tt.to, 1)
			if name == "two audited pools" {
				text += "audit: true\n"
			}
			_, err := Parse("beside.yaml", []byte(text), nil, false)
			if err == nil {
				t.Fatalf("the experiment was accepted; want %q", tt.want)
			}
			ps, ok := err.(strict.Problems)
			if !ok || !strings.Contains(ps.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Writing workloads can be audited together if each has its own records.
func TestAuditOfDisjointWriters(t *testing.T) {
	two := func(second string) string {
		return `name: two
topology: {sites: [a, b, c], defaults: {rtt: 10ms}}
database: redis
client: a
audit: true
workloads:
  - {name: here, workload: {name: a, records: 100, properties: {insertcount: "50"}}}
  - {name: there, client: b, workload: {name: a, records: 100, properties: {` + second + `}}}
`
	}
	if got := parse(t, two(`insertstart: "50"`)).AuditedPools(); len(got) != 2 {
		t.Errorf("the audit covers %+v, want both", got)
	}
	if _, err := Parse("x.yaml", []byte(two(`insertstart: "49"`)), nil, false); err == nil ||
		!strings.Contains(err.Error(), "here and there write the same records") {
		t.Errorf("with one common record: %v", err)
	}
	if _, err := Parse("x.yaml", []byte(strings.Replace(two(`insertstart: "50"`), "name: a, records: 100, properties: {insertc",
		"name: d, records: 100, properties: {insertc", 1)), nil, false); err == nil ||
		!strings.Contains(err.Error(), "existing records, from 50 on") {
		t.Errorf("with inserts into the other pool's records: %v", err)
	}
}

func TestAuditRefusesDeletes(t *testing.T) {
	text := strings.Replace(small, "fieldlength: 50", `readproportion: "0.2", deleteproportion: "0.3"`, 1) + "audit: true\n"
	if _, err := Parse("x.yaml", []byte(text), nil, false); err == nil || !strings.Contains(err.Error(), "an audit does not support deletes") {
		t.Errorf("got %v", err)
	}
}
