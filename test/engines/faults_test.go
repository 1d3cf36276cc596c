package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/internal/record"
	"skerry/test/testkit"
)

// fault is a fault of machine h2, which labs call two, during trials on it.
type fault struct {
	name string
	do   func(r *room)
	// gone is a permanent fault: the run is resumed on the remaining machines.
	gone bool
	// borne is a fault that may leave all trials intact.
	borne bool
}

// tooLong is longer than the timeout of an agent or its machine.
const tooLong = 75 * time.Second

func (r *room) h2(script string) {
	r.t.Helper()
	r.must(r.machines["h2"].command("bash", "-ec", script))
}

// lose ends the machine, with the control groups that its kernel would have removed.
func (r *room) lose() {
	r.machines["h2"].end()
	delete(r.machines, "h2")
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + r.group + "/h2")
	for _, g := range groups {
		removeGroup(g)
	}
}

func (r *room) freezer(state string) {
	r.t.Helper()
	if err := os.WriteFile("/sys/fs/cgroup/freezer/"+r.group+"/h2/freezer.state", []byte(state), 0); err != nil {
		r.t.Fatal(err)
	}
}

// away disconnects the machine for a time.
func away(long time.Duration) func(r *room) {
	return func(r *room) {
		r.must(r.onSwitch("ip", "link", "set", "p2", "down"))
		time.Sleep(long) // the tested outage has this length
		r.must(r.onSwitch("ip", "link", "set", "p2", "up"))
	}
}

var faults = []fault{
	{name: "lost", gone: true, do: func(r *room) { r.lose() }},
	{name: "reboot", do: func(r *room) {
		r.lose()
		r.await("the removal of its cable", func() bool { return r.sh(r.onSwitch("ip", "link", "show", "p2")) != nil })
		r.answering(2, r.image())
	}},
	{name: "freeze", do: func(r *room) {
		r.freezer("FROZEN")
		time.Sleep(tooLong) // the machine is paused for this long
		r.freezer("THAWED")
	}},
	{name: "disk", do: func(r *room) {
		r.h2("mount -o remount,size=16k /var/tmp; cat /dev/zero >/var/tmp/full 2>/dev/null || true")
		r.await("a failed trial", func() bool { return r.sh(r.shell(`grep -q '"state": *"failed"' runs/latest/summary.json`)) == nil })
		r.h2("rm /var/tmp/full; mount -o remount,size=1g /var/tmp")
	}},
	{name: "cut", borne: true, do: away(3 * time.Second)},
	{name: "outage", do: away(tooLong)},
}

// A fault of one of three machines during a run: trials that fail name the machine, others continue, the run is
// complete after it is resumed, and nothing remains on any machine.
func TestMachinesFaults(t *testing.T) {
	names := strings.Split(testkit.OptIn(t, "SKERRY_FAULTS", "faults of one of three machines: lost,reboot,freeze,disk,cut,outage,root or all; two minutes each"), ",")
	for _, f := range faults {
		if !slices.Contains(names, f.name) && !slices.Contains(names, "all") {
			continue
		}
		t.Run(f.name, func(t *testing.T) { f.on(t) })
	}
	if slices.Contains(names, "root") || slices.Contains(names, "all") {
		t.Run("root", withoutRoot)
	}
}

// withoutRoot adds a machine whose user is not root.
func withoutRoot(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	there := strings.Replace(threeMachines, "root@10.99.0.2", "guest@10.99.0.2", 1)
	r.write("three.yaml", there)
	r.write("grid.yaml", strings.Replace(grid, "name: ", "machines: three.yaml\nname: ", 1))
	r.h2(`echo 'guest:x:1000:1000::/home/guest:/bin/bash' >>/etc/passwd; echo 'guest:x:1000:' >>/etc/group
mkdir -p /home/guest/.ssh; cp /root/.ssh/authorized_keys /home/guest/.ssh; chown -R 1000:1000 /home/guest; chmod 755 /home/guest`)
	if out, err := r.skerry("lab up ring:3,rtt=10ms --name hand --machines three.yaml"); err == nil || !strings.Contains(out, "two: skerry does not run as root there, where no lab can stay up") {
		t.Errorf("a persistent lab without root: %v\n%s", err, out)
	}
	if out, err := r.skerry("run grid.yaml --out refused --set repetitions=1"); err == nil || !strings.Contains(out, "two: open endpoint: skerry does not run as root") {
		t.Errorf("a lab over machines without root: %v\n%s", err, out)
	}
	r.clean("refused")
	if out, err := r.skerry("run grid.yaml --out runs --set repetitions=2 --set 'place={\"*\": two}'"); err != nil {
		t.Errorf("labs on one machine without root: %v\n%s", err, out)
	}
	fault{}.trials(r, true)
	r.clean("without root")
}

func (f fault) on(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	first, rest, _ := strings.Cut(threeMachines, "  - {name: two")
	_, third, _ := strings.Cut(rest, "\n")
	r.write("three.yaml", threeMachines)
	r.write("left.yaml", first+third)
	r.write("grid.yaml", strings.Replace(grid, "name: ", "machines: three.yaml\nname: ", 1))
	cmd := r.shell("exec ./skerry run grid.yaml --set repetitions=2 --out runs >log 2>&1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.await("the second trial", func() bool { return exec.Command("test", "-e", r.path("runs/latest/trials/2.partial")).Run() == nil })
	f.do(r)
	var err error
	select {
	case err = <-ended:
	case <-time.After(4 * patience):
		t.Fatal("the run did not end")
	}
	said, _ := os.ReadFile(r.path("log"))
	t.Logf("the run returned %v:\n%s", err, said)
	ok, failed := f.trials(r, false)
	if ok == 0 || failed == 0 && !f.borne {
		t.Errorf("%d trials were measured, %d failed", ok, failed)
	}
	file := "three.yaml"
	if f.gone {
		file = "left.yaml"
	}
	if failed > 0 {
		if out, err := r.skerry("run --resume runs/latest --machines " + file); err != nil {
			t.Errorf("resuming the run: %v\n%s", err, out)
		}
	}
	f.trials(r, true)
	if out, err := r.skerry("machines sweep " + file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	r.clean("after " + f.name)
}

// trials returns the numbers of measured and failed trials of the run. Failures must name the machine; finally there
// are none.
func (f fault) trials(r *room, end bool) (ok, failed int) {
	r.t.Helper()
	d, err := record.Open(r.path("runs/latest"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, x := range d.Summary.Trials {
		if x.State == record.TrialOK {
			ok++
			continue
		}
		failed++
		if end || !strings.Contains(x.Error, "two: ") && !f.borne {
			r.t.Errorf("trial %d: %s: %s", x.ID, x.State, x.Error)
		}
	}
	if end && (!d.Summary.Complete || ok != 8) {
		r.t.Errorf("complete %v, %d of 8 trials", d.Summary.Complete, ok)
	}
	return ok, failed
}
