package engines

import (
	"math/rand/v2"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"skerry/internal/testkit"
)

// Workers and the controller are killed at random while a grid is measured; in the end every trial has
// its result once, and nothing is left over.
func TestSlurmKills(t *testing.T) {
	kills, err := strconv.Atoi(testkit.Asked(t, "SKERRY_KILLS", "how many processes are killed while Slurm runs a grid; minutes"))
	if err != nil {
		t.Fatal(err)
	}
	r := newSlurm(t)
	chance := rand.New(rand.NewPCG(uint64(kills), 21))
	begin := func(args string) (ended chan error) {
		ended = make(chan error, 1)
		cmd := r.machines["h1"].command("bash", "-c", `cd "$0" && exec ./skerry run `+args+` >>log 2>&1`, r.share)
		go func() { ended <- cmd.Run() }()
		return ended
	}
	ended := begin("grid.yaml --set repetitions=3 --on slurm:lab")
	r.await("a run directory", func() bool { return exec.Command("test", "-e", r.path("runs/latest/engine/state.json")).Run() == nil })
	workers, controllers := 0, 0
	for range 30 {
		select {
		case err := <-ended:
			if err == nil {
				t.Logf("%d workers and %d controllers were killed", workers, controllers)
				r.complete("runs/latest", 12)
				return
			}
			ended = begin("--resume runs/latest")
		case <-time.After(time.Duration(1000+chance.IntN(8000)) * time.Millisecond): // kills come at any moment
			if workers+controllers == kills {
				if err := <-ended; err != nil {
					t.Logf("the controller ended with %v", err)
				} else {
					ended <- nil
					continue
				}
				ended = begin("--resume runs/latest")
				continue
			}
			if chance.IntN(4) == 0 {
				controllers++
				_ = r.sh(r.machines["h1"].command("pkill", "-9", "-f", "^./skerry run"))
				continue
			}
			name := "h" + strconv.Itoa(1+chance.IntN(3))
			if r.sh(r.machines[name].command("pkill", "-9", "-f", "skerry run --resume .* --only @")) == nil {
				workers++
			}
		}
	}
	t.Fatal("the run was taken up 30 times and is not complete")
}
