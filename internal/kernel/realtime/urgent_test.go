package realtime

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/testkit"
)

func TestHurryAndRelax(t *testing.T) {
	testkit.Need(t, testkit.Root)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	policy := func() uint32 {
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy
	}
	p := Current()
	p.Raise()
	if got := policy(); got == unix.SCHED_NORMAL {
		testkit.Lacks(t, testkit.RealTime, errors.New("the policy stayed SCHED_OTHER"))
	} else if got != unix.SCHED_RR {
		t.Errorf("policy %d, want %d", got, unix.SCHED_RR)
	}
	p.Restore()
	if got := policy(); got != p.ordinary.Policy {
		t.Errorf("policy %d after it, want %d", got, p.ordinary.Policy)
	}
}

func TestNobodyIsNeverUrgent(t *testing.T) {
	var p *Process
	p.Raise() // neither panics
	p.Restore()
}

// Threads that the runtime starts later have the priority, too. It is for life, so that another process takes it.
func TestForever(t *testing.T) {
	testkit.Need(t, testkit.Root)
	const child = "SKERRY_TEST_FOREVER"
	if os.Getenv(child) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestForever$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	RaisePermanently()
	policies := make(chan uint32)
	for range 20 { // more than there are threads by now
		go func() {
			runtime.LockOSThread() // and never let go: the thread ends here
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				a = new(unix.SchedAttr)
			}
			policies <- a.Policy
		}()
	}
	for range 20 {
		if got := <-policies; got == unix.SCHED_NORMAL {
			testkit.Lacks(t, testkit.RealTime, errors.New("the policy stayed SCHED_OTHER"))
		} else if got != unix.SCHED_RR {
			t.Errorf("policy %d of a thread, want %d", got, unix.SCHED_RR)
		}
	}
}
