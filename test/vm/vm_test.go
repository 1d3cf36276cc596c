package vm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"skerry/internal/testkit"
	"skerry/test/vm"
)

// kernel is where setup.sh unpacks it.
const kernel = "../../.cache/vm/kernel"

// machine is QEMU together with the kernel.
var machine = testkit.Feature{Name: "qemu", Missing: func() string {
	if why := testkit.QEMU.Missing(); why != "" {
		return why
	}
	if _, err := os.Stat(kernel); err != nil {
		return "no kernel; run test/vm/setup.sh"
	}
	return ""
}}

// bootTime bounds a machine's life. Without hardware its tests take a minute alone, and minutes beside others.
const bootTime = 12 * time.Minute

// TestNetemInVM runs the tests of package netem where the kernel has netem.
func TestNetemInVM(t *testing.T) {
	runTests(t, "netem", "skerry/internal/link/netem", "^Test")
}

// TestUserspaceInVM runs what of the userspace engine's contract depends on the kernel's
// TUN devices: this one, unlike those of today, refuses UDP super-packets.
func TestUserspaceInVM(t *testing.T) {
	runTests(t, "userspace", "skerry/internal/link/userspace", "^TestContract$/^tun$/^(create|counters|checksums|queue|tcp)")
}

// TestLabInVM runs what of labs needs nothing but the kernel: with the netem engine,
// without control groups, and with the tunnels of a kernel that has WireGuard.
func TestLabInVM(t *testing.T) {
	runTests(t, "lab", "skerry/internal/lab", "^(TestPersistentLab|TestLinksAreSilent|TestTunnelsEncryptLinks)$")
}

// TestFleetInVM has machines meet by the kernel's WireGuard: elsewhere a program of its own encrypts.
func TestFleetInVM(t *testing.T) {
	runTests(t, "fleet", "skerry/internal/machine/fleet", "^TestContract$/^(links|ways)$")
}

// TestPlainInVM has machines meet by the VXLAN of a kernel that is older than those of today.
func TestPlainInVM(t *testing.T) {
	runTests(t, "tunnel", "skerry/internal/link/tunnel", "^TestVXLAN")
}

// TestHostInVM runs what of nodes depends on control groups of version 2.
func TestHostInVM(t *testing.T) {
	runTests(t, "host", "skerry/internal/machine/host", "^TestVersion2$")
}

// runTests runs those of a package's tests that match on a machine and reports each as
// a subtest.
func runTests(t *testing.T, name, pkg, match string) {
	testkit.Need(t, machine)
	m := vm.Machine{
		Kernel: kernel, Modules: []string{"veth", "tun", "sch_prio", "sch_netem", "sch_hfsc", "wireguard", "vxlan"},
		Init: build(t, "init", "build", "skerry/test/vm/init"),
	}
	tests := vm.Program{
		Name: name, File: build(t, name+".test", "test", "-c", pkg),
		Args: []string{"-test.v=test2json", "-test.timeout=10m", "-test.run=" + match},
		Env:  []string{"SKERRY_REQUIRE=root,tun,netem,cgroup2", "SKERRY_TEST_SLOW=3"},
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	r := results{t: t, output: map[string][]string{}}
	err := m.Run(ctx, []vm.Program{tests}, r.line)
	switch {
	case err != nil:
		t.Errorf("%v; the console's last lines:\n%s", err, strings.Join(r.tail, "\n"))
	case r.passed == 0:
		t.Errorf("no test passed; the console's last lines:\n%s", strings.Join(r.tail, "\n"))
	}
}

// build builds a static program out of a package, as `go test` would where its tests
// are wanted.
func build(t *testing.T, name string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", append(args[:len(args)-1:len(args)-1], "-o", file, args[len(args)-1])...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath") // as make has compiled already
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return file
}

// results turns the output of tests into subtests as it comes.
type results struct {
	t       *testing.T
	current string              // the test whose output comes
	output  map[string][]string // of each test under way
	tail    []string            // of the console
	passed  int
}

// The lines of -test.v=test2json that are not a test's own output. The character
// before them tells one from a test that prints the like.
var (
	event  = regexp.MustCompile(`^\x16=== \w+ +(\S*)`)
	result = regexp.MustCompile(`^\x16 *--- (PASS|FAIL|SKIP): (\S+) \((\S+)\)`)
)

func (r *results) line(text string) {
	r.tail = append(r.tail, text)
	if len(r.tail) > 60 {
		r.tail = r.tail[1:]
	}
	if found := event.FindStringSubmatch(text); found != nil {
		r.current = found[1]
		return
	}
	found := result.FindStringSubmatch(text)
	if found == nil {
		r.output[r.current] = append(r.output[r.current], text)
		return
	}
	name := found[2]
	output := strings.Join(r.output[name], "\n")
	delete(r.output, name)
	r.t.Run(name, func(t *testing.T) {
		switch found[1] {
		case "FAIL":
			t.Errorf("failed on the machine:\n%s", output)
		case "SKIP":
			t.Skip(strings.TrimSpace(output))
		default:
			t.Logf("took %s on the machine", found[3])
			r.passed++
		}
	})
}
