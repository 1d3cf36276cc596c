package realtime

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/testkit"
)

// A thread that looks again and again for what another one does lets that one run, where both have
// one processor.
func TestThreadsTakeTurns(t *testing.T) {
	testkit.Need(t, testkit.Root)
	wake, waker, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	defer waker.Close()
	var spins, done atomic.Bool
	ready, results := make(chan error), make(chan error, 2)
	prepare := func() error {
		runtime.LockOSThread() // the thread ends with its goroutine
		if err := Pin(0, 1); err != nil {
			return err
		}
		return Thread(0, Priority)
	}
	go func() {
		err := prepare()
		ready <- err
		if err == nil {
			_, err = wake.Read(make([]byte, 1))
			done.Store(true)
		}
		results <- err
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	go func() {
		err := prepare()
		spins.Store(true)
		for bound := time.Now().Add(20 * time.Second); err == nil && !done.Load() && time.Now().Before(bound); {
		}
		results <- err
	}()
	for !spins.Load() {
		runtime.Gosched()
	}
	if _, err := waker.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if !done.Load() {
		t.Error("a thread that only looks kept the other from its processor")
	}
}

func TestChildGroup(t *testing.T) {
	tests := []struct {
		name, groups, want string
	}{
		{"root", "3:cpuset:/x\n1:cpu:/\n0::/\n", ""},
		{"child", "3:cpuset:/\n1:cpu:/lab/node\n0::/\n", "cpu"},
		{"controllers together", "4:cpu,cpuacct:/user.slice\n", "cpu,cpuacct"},
		{"version 2", "0::/user.slice/session-1.scope\n", ""},
		{"other names", "5:cpuset,cpuacct:/x\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := childGroup(tt.groups)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("childGroup = %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
