package inventory

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/base/strict"
)

func load(t *testing.T, text string) (File, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load("m.yaml")
}

func TestLoad(t *testing.T) {
	f, err := load(t, `machines:
  - {name: rack-1, ssh: lab@10.0.0.11}
  - {name: pune, ssh: {host: gate, user: debian, port: 2222, identity: keys/lab, options: [ProxyJump=bastion]}, sudo: true, site: Pune, addr: 203.0.113.7, cores: 2, memory: 4GiB}
  - {kubernetes: {context: lab, namespace: skerry, selector: app=skerry-machine}}
  - {name: any, command: [docker, exec, -i, box, skerry, agent, machine]}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Name: "rack-1", SSH: &SSH{Host: "lab@10.0.0.11"}},
		{Name: "pune", SSH: &SSH{Host: "gate", User: "debian", Port: 2222, Identity: "keys/lab", Options: []string{"ProxyJump=bastion"}},
			Sudo: true, Site: "Pune", Addr: "203.0.113.7", Cores: 2, Memory: 4 << 30},
		{Kubernetes: &Kubernetes{Context: "lab", Namespace: "skerry", Selector: "app=skerry-machine"}},
		{Name: "any", Command: []string{"docker", "exec", "-i", "box", "skerry", "agent", "machine"}},
	}
	if diff := cmp.Diff(want, f.Machines, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Error(diff)
	}
	var addrs []string
	for _, m := range f.Machines {
		addrs = append(addrs, m.Address())
	}
	if diff := cmp.Diff([]string{"10.0.0.11", "203.0.113.7", "", ""}, addrs); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                            "machines is missing",
		"machines: []":                  "m.yaml:1:11: machines:",
		"machines: [{name: a}]":         "m.yaml:1:13: machines[0]: nothing says how the machine is reached; give ssh, kubernetes or command",
		"machines: [{ssh: x}]":          "m.yaml:1:13: machines[0]: name is missing",
		"machines: [{name: a, shs: x}]": `unknown key "shs"; did you mean "ssh"?`,
		"machines: [{name: a, ssh: x, command: [y]}]":      "ssh and command exclude each other",
		"machines: [{name: a, ssh: x}, {name: a, ssh: y}]": `m.yaml:1:38: machines[1].name: the name "a" is that of machines[0], too; give it another name`,
		"machines: [{name: a, ssh: x, addr: host}]":        `"host" is not an IP address`,
		"machines: [{name: a, ssh: -oProxyCommand=x}]":     "ssh.host",
		"machines: [{name: a, ssh: {user: x}}]":            "host is missing",
		"machines: [{name: a, ssh: {host: x, port: 0}}]":   "port",
		"machines: [{name: a, command: [x], sudo: true}]":  "sudo goes with ssh",
		"machines: [{name: a/b, ssh: x}]":                  "name",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestShell(t *testing.T) {
	m := Entry{Name: "a", SSH: &SSH{Host: "h", User: "u", Port: 7, Identity: "k", Options: []string{"A=b"}}}
	got, err := m.Shell("echo 'it is'")
	want := []string{"ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "A=b", "-i", "k", "-l", "u", "-p", "7", "h",
		`exec /bin/sh -c 'echo '\''it is'\'''`}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := (Entry{Name: "any", Command: []string{"x"}}).Shell("true"); err == nil || !strings.Contains(err.Error(), "any") {
		t.Errorf("%v", err)
	}
}

// kubectl replaces the real one, because there is no cluster.
const kubectl = `#!/bin/sh
case "$*" in
"--context lab get pods --selector app=x --output json") echo '{"items": [
  {"metadata": {"name": "p1"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": "10.1.0.1"}},
  {"metadata": {"name": "p2"}, "spec": {"nodeName": "n2"}, "status": {"phase": "Pending"}}]}' ;;
*) echo "no such pods: $*" >&2; exit 1 ;;
esac
`

func TestPodsAreMachines(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	f := File{Machines: []Entry{{Kubernetes: &Kubernetes{Context: "lab", Selector: "app=x"}}}}
	got, err := f.Expand(t.Context())
	if err != nil || len(got) != 1 || got[0].Name != "n1" || got[0].Address() != "10.1.0.1" {
		t.Fatalf("%+v, %v", got, err)
	}
	argv, err := got[0].Shell("true")
	if diff := cmp.Diff([]string{"kubectl", "--context", "lab", "exec", "-i", "p1", "--", "/bin/sh", "-c", "true"}, argv); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	f.Machines[0].Kubernetes.Selector = "app=y"
	if _, err := f.Expand(t.Context()); err == nil || !strings.Contains(err.Error(), "no such pods") {
		t.Errorf("%v", err)
	}
}

// Machines can be given in another file, by path or as a list.
func TestMachinesInAnotherFile(t *testing.T) {
	type other struct {
		Machines Ref `yaml:"machines"`
	}
	for text, want := range map[string]Ref{
		"machines: m.yaml": {File: "m.yaml"},
		"machines: [{name: a, ssh: {host: h, identity: k}}]": {List: []Entry{{Name: "a", SSH: &SSH{Host: "h", Identity: "k"}}}},
	} {
		root, err := strict.Parse("e.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got other
		if ps := strict.Decode(root, &got, ""); len(ps) > 0 {
			t.Fatalf("%s: %v", text, ps)
		}
		if diff := cmp.Diff(want, got.Machines, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
			t.Error(diff)
		}
		if got.Machines.List == nil {
			continue
		}
		if f, err := got.Machines.Load("dir/e.yaml"); err != nil || f.Machines[0].SSH.Identity != "dir/k" {
			t.Errorf("%+v, %v: want paths relative to the file", f, err)
		}
	}
	root, err := strict.Parse("e.yaml", []byte("machines: {a: b}"))
	if err != nil {
		t.Fatal(err)
	}
	var bad other
	if ps := strict.Decode(root, &bad, ""); len(ps) != 1 || !strings.Contains(ps[0].Message, "want the path of a machines file or a list") {
		t.Errorf("%v", ps)
	}
	if ps := (Ref{List: []Entry{{Name: "a"}}}).Check("machines"); len(ps) != 1 || ps[0].Path != "machines[0]" {
		t.Errorf("%+v", ps)
	}
}

// A terminal is requested if ssh or kubectl has one.
func TestTerminal(t *testing.T) {
	got, err := Entry{Name: "a", SSH: &SSH{Host: "h"}}.Terminal("x")
	if err != nil || !slices.Equal(got[:3], []string{"ssh", "-T", "-t"}) {
		t.Errorf("%v, %v", got, err)
	}
	got, err = Entry{Name: "a", Kubernetes: &Kubernetes{Selector: "s"}, pod: "p"}.Terminal("x")
	if err != nil || !slices.Equal(got[:4], []string{"kubectl", "exec", "-t", "-i"}) {
		t.Errorf("%v, %v", got, err)
	}
}
