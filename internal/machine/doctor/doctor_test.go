package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/install"
	"skerry/internal/link/userspace/device"
)

func TestConclusion(t *testing.T) {
	no := errors.New("no")
	for _, test := range []struct {
		name     string
		rights   rights
		links    linkers
		runnable bool
		engine   string
	}{
		{"all", rights{}, linkers{kind: device.TUN}, true, "netem"},
		{"no netem", rights{users: no}, linkers{netem: no, kind: device.TUN}, true, "userspace"},
		{"no engine", rights{}, linkers{netem: no, userspace: no}, false, ""},
		{"rootless", rights{network: no}, linkers{netem: no, userspace: no}, true, "userspace"},
		{"nothing", rights{network: no, users: no}, linkers{netem: no, userspace: no}, false, ""},
	} {
		var r Report
		r.conclude(test.rights, test.links)
		if r.Runnable != test.runnable || r.Engine != test.engine || r.Why == "" {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	r := Report{Why: "labs run here", Findings: []Finding{
		{Name: "netem", State: Missing, Detail: "none", Mend: "modprobe sch_netem"},
		{Name: "a longer name", State: OK, Detail: "fine"},
	}}
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `netem          missing  none
                        -> modprobe sch_netem
a longer name  ok       fine

Labs run here.
`
	if b.String() != want {
		t.Errorf("printed\n%swant\n%s", b.String(), want)
	}
}

// The findings depend on the machine. Every feature must be examined, and nothing may remain.
func TestExamine(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	groups := cgroups(t)
	r := Examiner{Store: install.Store{Dir: t.TempDir()}, Recipes: []install.Recipe{{
		Name: "demo", Packages: []string{"skerry-no-such-package"}, Programs: []string{"skerry-no-such-program"},
	}}}.Examine(t.Context())
	states := make(map[string]State)
	for _, f := range r.Findings {
		if f.Detail == "" || strings.Contains(f.Detail, "\n") || f.State == Missing && f.Mend == "" {
			t.Errorf("finding %+v is empty or too long for a line", f)
		}
		if _, twice := states[f.Name]; twice {
			t.Errorf("%s is found twice", f.Name)
		}
		states[f.Name] = f.State
	}
	for name, want := range map[string]State{
		"network namespaces": "", "user namespaces": "", "netem": "", "TUN devices": "", "packet sockets": "",
		"veth pairs": "", "WireGuard": "", "IPVS": "", "control groups": "", "disk limits": "", "real-time priority": "", "clock": "",
		"processors": "", "memory": "", "disk": "", "open files": "", "processes": "", "iproute2": OK,
		"apt": Limited, "demo": Missing,
	} {
		if got, found := states[name]; !found || want != "" && got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
		t.Errorf("the process is in another network namespace: %s, %v", after, err)
	}
	if after := cgroups(t); after != groups {
		t.Errorf("control groups changed from %q to %q", groups, after)
	}
}

// cgroups returns the control groups that the doctor of this process creates.
func cgroups(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/skerry/doctor-*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, " ")
}
