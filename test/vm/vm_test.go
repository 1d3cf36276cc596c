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

	"skerry/test/testkit"
	"skerry/test/vm"
)

// kernel is the folder in which setup.sh unpacks the kernel.
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

// bootTime bounds the life of a machine. Without hardware support its tests take a minute, and several minutes on a
// busy host.
const bootTime = 12 * time.Minute

// The tests of package netem run on a kernel with netem.
func TestNetemInVM(t *testing.T) {
	runTests(t, "netem", "skerry/internal/link/netem", "^Test")
}

// Those parts of the userspace engine's contract run that depend on the kernel's TUN devices: this kernel, unlike
// current ones, refuses UDP super-packets.
func TestUserspaceInVM(t *testing.T) {
	runTests(t, "userspace", "skerry/internal/link/userspace", "^TestContract$/^tun$/^(create|counters|checksums|queue|tcp)")
}

// Tests of labs run with the netem engine, without control groups, and with the tunnels of a kernel with WireGuard.
func TestLabInVM(t *testing.T) {
	runTests(t, "lab", "skerry/internal/lab", "^(TestPersistentLabIsFoundByOtherProcesses|TestKernelSendsNothingOnLinks|TestTunnelsEncryptLinks)$")
}

// Machines are connected by the kernel's WireGuard; elsewhere a separate program encrypts.
func TestFleetInVM(t *testing.T) {
	runTests(t, "fleet", "skerry/internal/machine/fleet", "^TestContract$/^(links|ways)$")
}

// Machines are connected by the VXLAN of an older kernel.
func TestPlainInVM(t *testing.T) {
	runTests(t, "tunnel", "skerry/internal/link/tunnel", "^TestVXLAN")
}

// The tests of nodes run with control groups of version 2.
func TestHostInVM(t *testing.T) {
	runTests(t, "host", "skerry/internal/machine/host", "^TestCgroupV2LimitsNodes$")
}

// runTests runs matching tests of a package on a machine and reports each as a subtest.
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
		t.Errorf("no test passed; last lines of the console:\n%s", strings.Join(r.tail, "\n"))
	}
}

// build builds a static program, or the tests of a package like `go test`.
func build(t *testing.T, name string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", append(args[:len(args)-1:len(args)-1], "-o", file, args[len(args)-1])...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath") // reuses packages compiled by make
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return file
}

// results converts the output of tests into subtests while it arrives.
type results struct {
	t       *testing.T
	current string              // test whose output is arriving
	output  map[string][]string // output of each running test
	tail    []string            // last lines of the console
	passed  int
}

// The lines of -test.v=test2json that are not the output of a test. The character before them distinguishes them from
// similar output of a test.
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
