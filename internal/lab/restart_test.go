package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
	"skerry/test/testkit/testhost"
)

// After a restart, mounts and processes are gone, directories on disks are not, and a state directory in memory is
// gone, too.
func TestLabIsCleanedUpAfterRestart(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("state lost %v", lost), func(t *testing.T) {
			c := config(t, "restart")
			c.Ephemeral = false
			l, err := Up(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			p, facts := placeOf(t, c), l.part.Facts()
			if err := errors.Join(restart(facts, p), l.Close()); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SKERRY_DATA", c.DataDir)
			if lost {
				if err := os.RemoveAll(c.StateDir); err != nil {
					t.Fatal(err)
				}
			} else {
				before(t, p.Path(journal.RecordFile))
				before(t, p.Path(journal.JournalFile))
			}
			mustSweep(t, c)
		})
	}
}

// restart removes those parts of a lab that a restart of the machine removes.
func restart(f machine.Facts, p journal.LabDir) error {
	moving, err := procfs.FindProcess(f.Emulator)
	if err == nil {
		err = moving.Kill()
	}
	for err == nil && moving.Alive() {
	}
	shown, globErr := filepath.Glob(testhost.NetnsDir + "/" + "skerry-" + p.Name + "-*")
	errs := []error{err, globErr, network.Unmount(p.Namespaces())}
	for _, name := range shown {
		errs = append(errs, os.Remove(name))
	}
	tree, err := cgroup.Open()
	if err == nil {
		err = tree.Group(f.ID).Remove()
	}
	return errors.Join(append(errs, err)...)
}

// before lets a file refer to the previous boot of the machine.
func before(t *testing.T, path string) {
	t.Helper()
	text, errRead := os.ReadFile(path)
	boot, errBoot := procfs.BootID()
	if err := errors.Join(errRead, errBoot); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), boot) {
		t.Fatalf("%s does not contain the boot ID", path)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), boot, "previous boot")), 0o600); err != nil {
		t.Fatal(err)
	}
}
