package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const realFile = `
name: real
machines: machines.yaml
links: real
topology: {sites: [Oslo, Pune], defaults: {rtt: 10ms}}
client: Oslo
database: redis
workload: {name: a, records: 100}
stop: {time: 20s}
`

// The real links are known before the start, and settings that they cannot have are rejected.
func TestRealLinks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"machines.yaml": "machines:\n  - {name: one, ssh: root@10.0.0.1, site: Oslo}\n  - {name: two, ssh: root@10.0.0.2, site: Pune}\n",
		"spread.yaml":   "machines:\n  - {name: one, ssh: root@10.0.0.1}\n  - {name: two, ssh: root@10.0.0.2}\n",
		"real.yaml":     realFile,
		"alone.yaml":    strings.Replace(realFile, "machines: machines.yaml\n", "", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const cloud = "events=[{at: 1s, for: 2s, latency: {between: [Oslo, Pune], "
	for name, tt := range map[string]struct {
		file string
		sets []string
		want string // part of the only mistake; "" for none
	}{
		"as it is":              {file: "real.yaml"},
		"one machine":           {file: "alone.yaml", want: "the lab runs on one"},
		"a single machine":      {file: "real.yaml", sets: []string{"place={Oslo: one, Pune: one}"}, want: "all nodes are on one"},
		"a scale":               {file: "real.yaml", sets: []string{"scale=2"}, want: "scale does not apply"},
		"a drift":               {file: "real.yaml", sets: []string{"drift={steps: [{at: 1s, scale: 2}]}"}, want: "drift does not apply"},
		"more latency":          {file: "real.yaml", sets: []string{cloud + "add: 5ms}}]"}},
		"another latency":       {file: "real.yaml", sets: []string{cloud + "set: 5ms}}]"}, want: "Oslo~Pune is a real link"},
		"a latency by a factor": {file: "real.yaml", sets: []string{cloud + "scale: 3}}]"}, want: "Oslo~Pune is a real link"},
		"a cut":                 {file: "real.yaml", sets: []string{"events=[{at: 1s, for: 2s, link_down: {of: Pune}}]"}},
		"a bound of bandwidth":  {file: "real.yaml", sets: []string{"events=[{at: 1s, for: 2s, bandwidth: {of: Pune, set: 10mbit}}]"}},
		"a link on one machine": {file: "real.yaml", sets: []string{"events=[{at: 1s, for: 2s, latency: {between: [Oslo, client], set: 5ms}}]"}},
		"unknown placement": {file: "real.yaml", sets: []string{"machines=spread.yaml",
			"events=[{at: 1s, for: 2s, loss: {of: Pune, set: 5%}}]"}, want: "is a real link"},
		"emulated again": {file: "real.yaml", sets: []string{"links=emulated", "scale=2", cloud + "set: 5ms}}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Load(filepath.Join(dir, tt.file), tt.sets, false)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want that %s", err, tt.want)
			case tt.want == "" && e.Links == realLinks && (len(e.origin.real) != 2 || e.origin.real["Oslo~client"] || e.origin.real["client~Oslo"]):
				t.Errorf("real links are %v, want those from Pune to Oslo and to the client", e.origin.real)
			}
		})
	}
}
