package engines

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"skerry/test/testkit"
)

// kill is a way to damage machine n.
type kill struct {
	name string
	do   func(n int)
}

// kills damages a run at random, and resumes it whenever its controller ends. Finally every trial has one result, and
// nothing remains.
func (r *room) kills(flags string, all ...kill) {
	times, err := strconv.Atoi(testkit.OptIn(r.t, "SKERRY_KILLS", "number of faults while an engine runs a grid; minutes"))
	if err != nil {
		r.t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	chance := rand.New(rand.NewPCG(seed, 21))
	begin := func(args string) (ended chan error) {
		ended = make(chan error, 1)
		cmd := r.shell("exec ./skerry run " + args + " >>log 2>&1")
		go func() { ended <- cmd.Run() }()
		return ended
	}
	all = append(all, kill{"controller", func(int) { _ = r.sh(r.machines["h1"].command("pkill", "-9", "-f", "^./skerry run")) }})
	repetitions := 6 + times // enough for the run to last until the last fault
	ended := begin(fmt.Sprintf("grid.yaml --set repetitions=%d %s", repetitions, flags))
	r.await("a run directory", func() bool { return r.sh(r.shell("[ -e runs/latest/engine/state.json ]")) == nil })
	did := map[string]int{}
	for done := 0; done < times; {
		select {
		case err := <-ended:
			if err == nil {
				r.t.Fatalf("seed %d: the run was complete after %d kills", seed, done)
			}
			ended = begin("--resume runs/latest")
		case <-time.After(time.Duration(500+chance.IntN(4000)) * time.Millisecond): // a fault at any time
			k := all[chance.IntN(len(all))]
			k.do(1 + chance.IntN(3))
			did[k.name]++
			done++
		}
	}
	taken := 0
	for err := <-ended; err != nil; err = <-ended {
		if taken++; taken == 10 {
			r.t.Fatalf("seed %d: the run was resumed ten times and is not complete: %v", seed, err)
		}
		ended = begin("--resume runs/latest")
	}
	on := r.complete("runs/latest", 4*repetitions)
	r.t.Logf("seed %d: %v; after the last of %d faults the run was resumed %d times; trials by machine: %v", seed, did, times, taken, on)
}

// cut disconnects a machine for a while: for a time that engines tolerate, or after which they exclude the machine.
func (r *room) cut() kill {
	return kill{"network", func(n int) {
		port, long := fmt.Sprintf("p%d", max(n, 2)), time.Duration(3+25*(n%2))*time.Second // h1 has the engine's controller
		r.must(r.onSwitch("ip", "link", "set", port, "down"))
		time.Sleep(long) // the tested outage has this length
		r.must(r.onSwitch("ip", "link", "set", port, "up"))
	}}
}

// task kills the process of a trial, if one runs.
func (r *room) task(pattern string) kill {
	return kill{"task", func(n int) {
		for _, i := range slices.Compact([]int{n, 1, 2, 3}) {
			if r.sh(r.machines[fmt.Sprintf("h%d", i)].command("pkill", "-9", "-f", pattern)) == nil {
				return
			}
		}
	}}
}

func TestSlurmKills(t *testing.T) {
	testkit.OptIn(t, "SKERRY_KILLS", "number of faults while an engine runs a grid; minutes")
	r := newSlurm(t)
	r.kills("--on slurm:lab", r.task("skerry run --resume .* --only @"), r.cut(), kill{"slurmd", func(n int) {
		m := r.machines[fmt.Sprintf("h%d", n)]
		r.must(m.command("bash", "-c", "pkill -9 -x slurmd; sleep 1; slurmd"))
	}})
}

func TestKubernetesKills(t *testing.T) {
	testkit.OptIn(t, "SKERRY_KILLS", "number of faults while an engine runs a grid; minutes")
	r := newKubernetes(t)
	r.kills(onKubernetes, r.task("skerry agent task --plan"), r.cut(), kill{"kubelet", func(n int) {
		m := r.machines[fmt.Sprintf("h%d", n)]
		r.must(m.command("bash", "-c", `pkill -9 -f "^$0/hyperkube kubelet"; sleep 1; $0/kubelet.sh $0 >>$0/$(hostname).log 2>&1 </dev/null`, r.share))
	}})
}
