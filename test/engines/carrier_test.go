package engines

import (
	"os/exec"
	"strings"
	"testing"
)

// Machines are reached by the system's ssh: each receives the program, its agent responds, and exits.
func TestMachinesAreReached(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	for _, given := range []string{"first", "again"} {
		out, err := r.machines["h1"].command("bash", "-c", `cd "$0" && ./skerry machines sweep machines.yaml`, r.share).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
			t.Errorf("%s: %v, want that nobody is out of reach", given, err)
		}
		for _, want := range []string{"one: nothing to remove", "two: nothing to remove", "three: nothing to remove", "nobody: machine is unreachable"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in\n%s", given, want, out)
			}
		}
		for name, m := range r.machines {
			left := `[ $(ls -d /var/cache/skerry/agent/*/* | wc -l) = 1 ] && ! pgrep -x skerry`
			if err := r.sh(m.command("bash", "-c", left)); err != nil {
				t.Errorf("%s: want one program and no agent on %s: %v", given, name, err)
			}
		}
	}
}
