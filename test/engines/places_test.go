package engines

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/record"
)

// Three machines with OpenSSH only: without a shared folder, and two of them without skerry.
func TestMachinesFile(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	r.write("grid.yaml", grid)
	// Only h1 has the run directory.
	out, err := r.machines["h1"].command("bash", "-c", `cd "$0" && ./skerry run grid.yaml --on machines.yaml --out /root/runs && cp -rL /root/runs/latest "$0/run"`, r.share).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	on := r.complete("run", 4)
	if len(on) != 3 {
		t.Errorf("trials ran on %v, want three machines", on)
	}
	if !strings.Contains(string(out), "nobody") {
		t.Error("the unusable machine was not reported")
	}
}

// threeMachines is a machines file with OpenSSH.
const threeMachines = `machines:
  - {name: one, ssh: {host: root@10.99.0.1, identity: key, options: [StrictHostKeyChecking=no, UserKnownHostsFile=/dev/null, LogLevel=ERROR]}}
  - {name: two, ssh: {host: root@10.99.0.2, identity: key, options: [StrictHostKeyChecking=no, UserKnownHostsFile=/dev/null, LogLevel=ERROR]}}
  - {name: three, ssh: {host: root@10.99.0.3, identity: key, options: [StrictHostKeyChecking=no, UserKnownHostsFile=/dev/null, LogLevel=ERROR]}}
`

// reachable starts three machines with OpenSSH's server, and writes a machines file with them and an unreachable one.
func (r *room) reachable() {
	r.t.Helper()
	image := r.image()
	r.must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.path("key")))
	r.write("machines.yaml", "machines:\n")
	for n := 1; n <= 3; n++ {
		r.answering(n, image)
	}
	r.write("machines.yaml", threeMachines+"  - {name: nobody, command: [/bin/false]}\n")
}

// answering starts a machine with OpenSSH's server, which accepts the room's key and has no skerry.
func (r *room) answering(n int, image string) *machine {
	r.t.Helper()
	m := r.machine(n, image)
	r.must(m.command("bash", "-ec", `mkdir -p /run/sshd /root/.ssh /etc/ssh
grep -q ^sshd: /etc/passwd || echo 'sshd:x:107:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
cp "$0/key.pub" /root/.ssh/authorized_keys; chmod 700 /root /root/.ssh; chmod 600 /root/.ssh/authorized_keys
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/host <<<y >/dev/null
printf 'HostKey /etc/ssh/host\nPidFile none\nUsePAM no\nPermitRootLogin yes\nStrictModes no\n' >/etc/ssh/test
/usr/sbin/sshd -f /etc/ssh/test
rm -rf /root/.cache/skerry/bin`, r.share))
	r.await("sshd listens", func() bool { // sshd becomes a daemon before it listens
		return m.command("bash", "-c", fmt.Sprintf(": </dev/tcp/10.99.0.%d/22", n)).Run() == nil
	})
	return m
}

// trials returns those of a run, which must be complete with this number of trials.
func (r *room) trials(dir string, want int) []record.Trial {
	r.t.Helper()
	d, err := record.Open(r.path(dir))
	if err != nil {
		r.t.Fatal(err)
	}
	if !d.Summary.Complete || len(d.Summary.Trials) != want {
		r.t.Fatalf("%s: complete %v, %d of %d trials", dir, d.Summary.Complete, len(d.Summary.Trials), want)
	}
	return d.Summary.Trials
}

// complete fails the test unless each trial of a run has its result, and returns the machines of the trials.
func (r *room) complete(dir string, trials int) map[string]int {
	r.t.Helper()
	on := map[string]int{}
	for _, x := range r.trials(dir, trials) {
		if x.State != record.TrialOK || x.Attempt == "" || x.Goodput == 0 || x.Machine == nil {
			r.t.Errorf("trial %d: %s, attempt %q, %g ops/s: %s", x.ID, x.State, x.Attempt, x.Goodput, x.Error)
			continue
		}
		on[x.Machine.Name]++
	}
	if left, err := filepath.Glob(r.path(dir + "/attempts/*")); err != nil || len(left) > 0 {
		r.t.Errorf("leftovers: %q (%v)", left, err)
	}
	return on
}
