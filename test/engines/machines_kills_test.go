package engines

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"skerry/internal/record"
	"skerry/test/testkit"
)

// attack kills processes of labs on three machines.
type attack struct {
	*room
	chance *rand.Rand
	did    map[string]int
}

const (
	controller = "controller"
	agent      = "agent"
)

// harm kills the controller on h1, or an agent on one of the machines, whichever exists.
func (a *attack) harm() (what string) {
	if a.chance.IntN(2) == 0 {
		if a.sh(a.machines["h1"].command("pkill", "-9", "-f", "^./skerry (run|lab)")) == nil {
			what = controller
		}
	} else if n := 1 + a.chance.IntN(3); a.sh(a.machines[fmt.Sprintf("h%d", n)].command("pkill", "-9", "-f", "/skerry agent machine")) == nil {
		what = agent
	}
	if what != "" {
		a.did[what]++
	}
	return what
}

// checkDetection fails the test if the check for leftovers does not detect a running lab.
func (a *attack) checkDetection() {
	a.t.Helper()
	if out, err := a.skerry("lab up ring:3,rtt=10ms --name hand --machines three.yaml"); err != nil {
		a.t.Fatalf("%v\n%s", err, out)
	}
	left := a.left()
	for name := range a.machines {
		for _, what := range []string{"process", "mount", "port", "control group", "file"} {
			if !strings.Contains(left, name+": "+what+" ") {
				a.t.Errorf("the running lab has no %s on %s:\n%s", what, name, left)
			}
		}
	}
	if out, err := a.skerry("lab down hand"); err != nil {
		a.t.Fatalf("%v\n%s", err, out)
	}
	a.clean("a lab was taken down")
}

// moment is a random delay, so that a kill can hit any step of a command.
func (a *attack) moment(most time.Duration) <-chan time.Time {
	return time.After(time.Duration(a.chance.Int64N(int64(most))))
}

// begin starts skerry on h1.
func (a *attack) begin(args string) (ended chan error) {
	ended = make(chan error, 1)
	cmd := a.shell("exec ./skerry " + args + " >>log 2>&1")
	go func() { ended <- cmd.Run() }()
	return ended
}

// swept lets the next agents clean up, after which nothing may remain.
func (a *attack) swept(when string) {
	a.t.Helper()
	if out, err := a.skerry("machines sweep three.yaml"); err != nil {
		a.t.Errorf("%s: %v\n%s", when, err, out)
	}
	a.clean(when)
}

// run keeps a run going although its controller is killed. It returns after done reports that no more kills will
// follow.
func (a *attack) run(args string, done func() bool) {
	a.t.Helper()
	ended := a.begin(args)
	for !done() {
		select {
		case <-ended:
			a.swept("the run completed")
			return
		case <-a.moment(6 * time.Second):
			if a.harm() == controller {
				<-ended
				a.swept("the controller of a run was killed")
				return
			}
		}
	}
	<-ended
	a.swept("the last run ended")
}

// byHand brings up a persistent lab, with a kill during or after it.
func (a *attack) byHand() {
	a.t.Helper()
	ended := a.begin("lab up ring:6,rtt=10ms --name hand --machines three.yaml")
	select {
	case <-ended:
		a.harm()
	case <-a.moment(1500 * time.Millisecond):
		a.harm()
		<-ended
	}
	// This command and the next agents remove the rest of the lab.
	out, err := a.shell("./skerry lab down hand 2>&1").CombinedOutput()
	if err != nil && !strings.Contains(string(out), "no such lab") && !strings.Contains(string(out), "no lab") {
		a.t.Errorf("lab down: %v\n%s", err, out)
	}
	a.swept("a lab by hand")
}

// Controllers and agents of labs on machines are killed at random times. The next command leaves nothing on any
// machine, and the run is finally complete.
func TestMachinesKills(t *testing.T) {
	times, err := strconv.Atoi(testkit.OptIn(t, "SKERRY_KILLS", "number of kills of controllers and agents of labs on three machines; ten take four minutes"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	r.reachable()
	r.write("three.yaml", threeMachines)
	r.write("grid.yaml", strings.Replace(grid, "name: ", "machines: three.yaml\nname: ", 1))
	seed := uint64(time.Now().UnixNano())
	a := &attack{room: r, chance: rand.New(rand.NewPCG(seed, 22)), did: map[string]int{}}
	count := func() int { return a.did[controller] + a.did[agent] }
	done := func() bool { return count() >= times || t.Failed() }
	defer func() {
		if t.Failed() {
			out, _ := os.ReadFile(r.path("log"))
			t.Logf("seed %d: %v; output of skerry:\n%s", seed, a.did, out)
		}
	}()
	a.checkDetection()
	repetitions := 2 + times/4
	args := fmt.Sprintf("run grid.yaml --set repetitions=%d --out runs", repetitions)
	resumed := 0
	for !done() {
		if a.chance.IntN(3) == 0 {
			a.byHand()
			continue
		}
		a.run(args, done)
		if exec.Command("test", "-e", r.path("runs/latest/run.json")).Run() == nil {
			args = "run --resume runs/latest"
			resumed++
		}
	}
	if t.Failed() {
		return
	}
	for try := 0; ; try++ {
		out, err := r.skerry(args)
		if err == nil {
			break
		}
		if try == 5 {
			t.Fatalf("the run was resumed repeatedly and is not complete: %v\n%s", err, out)
		}
		args = "run --resume runs/latest"
	}
	for _, x := range r.trials("runs/latest", 4*repetitions) {
		if x.State != record.TrialOK || x.Goodput == 0 {
			t.Errorf("trial %d: %s, %g ops/s: %s", x.ID, x.State, x.Goodput, x.Error)
		}
	}
	r.clean("the test has completed")
	t.Logf("seed %d: killed %v; the run was resumed %d times", seed, a.did, resumed)
}
