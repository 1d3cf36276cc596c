package inventory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
)

// maker replaces OpenTofu or Terraform and supports the one required command: it prints the outputs stored next to the
// configuration.
const maker = `#!/bin/sh
[ "$*" = "output -json -no-color" ] || { echo "asked for $*" >&2; exit 64; }
[ -e outputs.json ] || { echo "Error: Backend initialization required, please run \"tofu init\"" >&2; exit 1; }
exec /bin/cat outputs.json
`

// programs creates a folder for PATH, with replacements of these names.
func programs(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(maker), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// applied creates a folder with stored outputs.
func applied(t *testing.T, outputs string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "outputs.json"), []byte(outputs), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// value is the JSON form of an output.
func value(v string) string {
	return fmt.Sprintf(`{"machines": {"sensitive": false, "type": ["tuple", []], "value": %s}}`, v)
}

func TestFromTofu(t *testing.T) {
	recorded, err := filepath.Abs("testdata/openstack")
	if err != nil {
		t.Fatal(err)
	}
	own := applied(t, value(`[{"name": "mine", "ssh": {"host": "192.0.2.7", "port": null}, "cores": 2, "memory": "4GiB", "site": null}]`))
	options := func(id string) []string { return []string{"StrictHostKeyChecking=accept-new", "HostKeyAlias=" + id} }
	want := []Entry{
		{Name: "skerry-melbourne", SSH: &SSH{Host: "203.0.113.14", User: "skerry", Identity: "/home/lab/.ssh/id_ed25519", Options: options("skerry-melbourne-server-12")},
			Sudo: true, Site: "Melbourne", Addr: "203.0.113.14"},
		{Name: "skerry-singapore", SSH: &SSH{Host: "203.0.113.15", User: "skerry", Identity: "/home/lab/.ssh/id_ed25519", Options: options("skerry-singapore-server-13")},
			Sudo: true, Site: "Singapore", Addr: "203.0.113.15"},
		{Name: "mine", SSH: &SSH{Host: "192.0.2.7"}, Cores: 2, Memory: 4 << 30},
	}
	for _, name := range []string{"tofu", "terraform"} {
		programs(t, name)
		f, err := FromTofu(t.Context(), []string{recorded, own})
		if diff := cmp.Diff(want, f.Machines, cmpopts.IgnoreUnexported(Entry{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestInvalidOutputsAreRejected(t *testing.T) {
	one := value(`[{"name": "a", "ssh": {"host": "h"}}]`)
	for _, c := range []struct {
		name, outputs, want, mend string
		programs                  []string
	}{
		{"no program", one, "neither tofu nor terraform is in PATH", "install OpenTofu", nil},
		{"not initialised", "", "Backend initialization required", "output", makers},
		{"nothing applied", "{}", "nothing is applied, or everything is destroyed", "tofu -chdir=", makers},
		{"of Terraform", "{}", "nothing is applied", "terraform -chdir=", makers[1:]},
		{"another output", `{"vpc": {"value": 1}, "ip": {"value": ""}}`, "outputs are ip, vpc, but no output is called machines", "module.NAME.machines", makers},
		{"empty", value("[]"), "machines is empty", "", makers},
		{"no list", value(`{"a": 1}`), "machines: want a list, not a mapping", "deploy/tofu", makers},
		{"other things", value(`[{"name": "a", "ip": "192.0.2.7"}]`), `unknown key "ip"`, "deploy/tofu", makers},
		{"no address yet", value(`[{"name": "a", "ssh": {"host": null}}]`), "machines[0].ssh: host is missing", "deploy/tofu", makers},
		{"no text", value(`[{"name": "a", "ssh": {"host": "-oProxyCommand=x"}}]`), "machines[0].ssh.host", "deploy/tofu", makers},
		{"no JSON", "No outputs found", "is not JSON", "", makers},
	} {
		programs(t, c.programs...)
		dir := applied(t, c.outputs)
		if c.outputs == "" {
			dir = t.TempDir()
		}
		_, err := FromTofu(t.Context(), []string{dir})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) || !strings.Contains(advice.Of(err), c.mend) {
			t.Errorf("%s: %v; %s", c.name, err, advice.Of(err))
		}
	}
	programs(t, makers...)
	for _, dirs := range [][]string{{"/nowhere"}, {"tofu_test.go"}} {
		if _, err := FromTofu(t.Context(), dirs); err == nil || !strings.Contains(err.Error(), dirs[0]) {
			t.Errorf("%v: %v", dirs, err)
		}
	}
	var ps strict.Problems
	if _, err := FromTofu(t.Context(), []string{applied(t, one), applied(t, one)}); !errors.As(err, &ps) || !strings.Contains(err.Error(), `"a" is that of machines[0], too`) {
		t.Errorf("duplicate name: %v", err)
	}
}
