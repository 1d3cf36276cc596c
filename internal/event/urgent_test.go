package event

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/testkit"
)

func TestUrgent(t *testing.T) {
	testkit.Need(t, testkit.Root)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nice := func() int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - p
	}
	before := nice()
	restore := urgent()
	if got := nice(); got != urgentNice {
		t.Errorf("nice %d, want %d", got, urgentNice)
	}
	restore()
	if got := nice(); got != before {
		t.Errorf("nice %d after it, want %d", got, before)
	}
}
