package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/kernel/procfs"
)

// counting repeatedly appends a line to a file, also from a child process.
const counting = "while :; do echo; sleep 0.01; done > a & while :; do echo; sleep 0.01; done > b"

func TestFreezeStopsEveryProcess(t *testing.T) {
	n := newNode(t, nil)
	p, err := n.Start(t.Context(), Command{Name: "counting", Path: "/bin/sh", Args: []string{"-c", counting}})
	if err != nil {
		t.Fatal(err)
	}
	sizes := func() (a, b int64) {
		for file, size := range map[string]*int64{"a": &a, "b": &b} {
			if st, err := os.Stat(filepath.Join(n.Dir(), file)); err == nil {
				*size = st.Size()
			}
		}
		return a, b
	}
	grows := func(than, and int64) bool {
		for range 1000 {
			if a, b := sizes(); a > than && b > and {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		return false
	}
	if !grows(0, 0) {
		t.Fatal("the counter does not advance")
	}
	if err := n.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	pids, err := n.processes()
	if err != nil || len(pids) < 2 {
		t.Fatalf("%d processes, %v", len(pids), err)
	}
	for _, pid := range pids {
		if st, err := procfs.ReadStat(pid); err != nil || !strings.ContainsRune("TDZ", rune(st.State)) {
			t.Errorf("%s is in state %c, %v", st.Name, st.State, err)
		}
	}
	if err := n.Freeze(t.Context()); err != nil {
		t.Errorf("freezing twice: %v", err)
	}
	a, b := sizes()
	if err := n.Thaw(); err != nil {
		t.Fatal(err)
	}
	if !grows(a, b) {
		t.Error("the counter does not advance after thawing")
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	for range 5000 { // its children are ending
		if pids, err := n.processes(); err != nil || len(pids) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("its children did not end")
}

func TestFreezeANodeWithoutProcesses(t *testing.T) {
	n := newNode(t, nil)
	if err := n.Freeze(t.Context()); err != nil {
		t.Error(err)
	}
	if err := n.Thaw(); err != nil {
		t.Error(err)
	}
}
