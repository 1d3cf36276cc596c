package urgent

import (
	"errors"
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
	p := This()
	p.Hurry()
	if got := policy(); got == unix.SCHED_NORMAL {
		testkit.Lacks(t, testkit.RealTime, errors.New("the policy stayed SCHED_OTHER"))
	} else if got != unix.SCHED_RR {
		t.Errorf("policy %d, want %d", got, unix.SCHED_RR)
	}
	p.Relax()
	if got := policy(); got != p.ordinary.Policy {
		t.Errorf("policy %d after it, want %d", got, p.ordinary.Policy)
	}
}

func TestNobodyIsNeverUrgent(t *testing.T) {
	var p *Process
	p.Hurry() // neither panics
	p.Relax()
}
