package engines

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"skerry/test/testkit"
)

func lockThread() { runtime.LockOSThread() }

// debian is the folder that setup.sh has downloaded.
const debian = "../../.cache/engines/tree"

var fetched = testkit.Feature{Name: "slurm", Missing: func() string {
	if _, err := os.Stat(debian + "/usr/sbin/slurmd"); err != nil {
		return "test/engines/setup.sh has not fetched it"
	}
	return ""
}}

// image returns that folder.
func (r *room) image() string {
	r.t.Helper()
	path, err := filepath.Abs(debian)
	if err != nil {
		r.t.Fatal(err)
	}
	return path
}

// grid has a low rate, because the three machines share two CPUs.
const grid = `
name: grid
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {rtt: 20ms}
client: Oslo
database: redis
workload: {name: a, records: 200, threads: 4, target: 100}
stop: {time: 2s}
warmup: 1s
retries: 0
matrix: {workload: [a, c], scale: [0.2, 1]}
`

// newSlurm starts a cluster of three machines; its controller and its login node are on h1.
func newSlurm(t *testing.T) *room {
	t.Helper()
	r := newRoom(t)
	image := r.image()
	conf, err := os.ReadFile("slurm.conf")
	if err != nil {
		t.Fatal(err)
	}
	r.write("slurm.conf", string(conf))
	r.write("munge.key", strings.Repeat("not a real secret ", 10))
	r.write("grid.yaml", grid)
	for n := 1; n <= 3; n++ {
		r.join(n, image)
	}
	r.await("three idle nodes", func() bool {
		out, err := r.machines["h1"].command("sinfo", "--noheader", "--format=%T %D").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle 3"
	})
	return r
}

// join starts a machine and its part of Slurm.
func (r *room) join(n int, image string) {
	r.t.Helper()
	m := r.machine(n, image)
	r.must(m.command("bash", "-ec", `mkdir -p /run/munge /var/lib/munge /var/log/munge /etc/munge /etc/slurm /var/lib/slurm/ctld /var/lib/slurm/d /var/spool
chmod 755 /run/munge; chmod 700 /var/lib/munge /var/log/munge /etc/munge
cp "$0/munge.key" /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; chown -R root:root /etc/munge /var/lib/munge /var/log/munge /run/munge
cp "$0/slurm.conf" /etc/slurm/slurm.conf
munged --force >/dev/null 2>&1 </dev/null
if [ "$(hostname)" = h1 ]; then slurmctld; fi
slurmd || { tail -n 5 /var/log/slurmd.log; exit 1; }`, r.share))
}

// half is the half of the grid with the shorter distances.
const half = "grid.yaml --set 'matrix.scale=[0.2]' "

func TestSlurm(t *testing.T) {
	r := newSlurm(t)
	// Variables of an outer job, and the user's options for sbatch, have no effect.
	r.run("shared", func(t *testing.T) {
		const outer = "SBATCH_TIMELIMIT=1 SBATCH_NO_REQUEUE=1 SLURM_JOB_ID=1 SLURM_NTASKS=7 SLURM_MEM_PER_CPU=1 SQUEUE_PARTITION=other SCANCEL_USER=nobody "
		out, err := r.shell(outer + "./skerry run grid.yaml --on slurm:lab").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "note: jobs ignore SBATCH_NO_REQUEUE, SBATCH_TIMELIMIT") {
			t.Fatalf("%v\n%s", err, out)
		}
		jobs, err := r.machines["h1"].command("scontrol", "--oneliner", "show", "jobs").Output()
		if err != nil || strings.Contains(string(jobs), "TimeLimit=00:01:00") || strings.Contains(string(jobs), "Requeue=0") {
			t.Errorf("%v\n%s", err, jobs)
		}
		if on := r.complete("runs/latest", 4); len(on) < 2 {
			t.Errorf("trials ran on %v, want several machines", on)
		}
	})
	// Only h1 has the run directory, and h3 has no space for the files of a running task.
	r.run("output", func(t *testing.T) {
		r.must(r.machines["h3"].command("bash", "-c", "mount -o remount,size=8k /tmp; cat /dev/zero >/tmp/full 2>/dev/null; true"))
		out, err := r.skerry("run " + half + "--on slurm:lab --results output --sbatch=--nodelist=h3 --out /root/full")
		if err == nil || !strings.Contains(out, "h3 has no room for the task in /tmp") {
			t.Errorf("with a node's disk full, the run returned %v", err)
		}
		_, err = r.skerry("run " + half + "--on slurm:lab --results output --out /root/runs && cp -rL /root/runs/latest runs/output")
		if err != nil {
			t.Fatal(err)
		}
		r.complete("runs/output", 2)
		r.must(r.machines["h3"].command("rm", "/tmp/full"))
		for name, m := range r.machines {
			if err := r.sh(m.command("bash", "-c", `[ -z "$(ls -d /tmp/skerry* 2>/dev/null)" ]`)); err != nil {
				t.Errorf("leftovers on %s: %v", name, err)
			}
		}
	})
	r.run("refused", func(t *testing.T) {
		out, err := r.skerry("run grid.yaml --on slurm:nowhere")
		if err == nil || !strings.Contains(out, "invalid partition") || !strings.Contains(out, "--sbatch") {
			t.Errorf("the run returned %v", err)
		}
	})
	if out, err := r.machines["h1"].command("squeue", "--noheader").Output(); err != nil || len(out) > 0 {
		t.Errorf("jobs were not removed (%v):\n%s", err, out)
	}
}
