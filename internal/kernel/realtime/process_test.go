package realtime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/test/testkit"
)

// raiser is the argument with which this test binary raises itself; refused is its exit code if that is not permitted.
const (
	raiser  = "raise"
	refused = 2
)

func TestMain(m *testing.M) {
	if !slices.Equal(os.Args[1:], []string{raiser}) {
		os.Exit(m.Run())
	}
	switch err := raiseAmidStarts(); {
	case errors.Is(err, unix.EPERM):
		os.Exit(refused)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// raiseAmidStarts raises this process while it starts threads, and returns the missed threads.
func raiseAmidStarts() error {
	var threads sync.WaitGroup
	defer threads.Wait()
	raised := make(chan struct{})
	defer close(raised)
	began := make(chan struct{})
	threads.Go(func() {
		for n := range 200 {
			threads.Go(func() {
				runtime.LockOSThread() // each needs a thread of its own
				<-raised
			})
			if n == 20 {
				close(began)
			}
		}
	})
	<-began
	if err := RaiseProcess(); err != nil {
		return err
	}
	var missed []error
	err := eachThread(func(tid int) error {
		has, err := unix.SchedGetAttr(tid, 0)
		if err == nil && (has.Policy != unix.SCHED_RR || has.Priority != EmulatorPriority) {
			missed = append(missed, fmt.Errorf("thread %d has class %d, priority %d", tid, has.Policy, has.Priority))
		}
		return err
	})
	return errors.Join(append(missed, err)...)
}

// A thread that starts while the others are raised is raised, too.
func TestRaiseProcessMissesNoThread(t *testing.T) {
	testkit.Need(t, testkit.Root)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		c := exec.CommandContext(t.Context(), exe, raiser)
		out, err := c.CombinedOutput()
		switch {
		case c.ProcessState != nil && c.ProcessState.ExitCode() == refused:
			testkit.Lacks(t, testkit.RealTime, unix.EPERM)
		case err != nil:
			t.Fatalf("%v: %s", err, out)
		}
	}
}
