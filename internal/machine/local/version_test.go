package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/machine"
	"skerry/internal/machine/journal"
	"skerry/test/machinetest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// version1 is lab.json as written by version 1, for a lab that is up.
const version1 = `{"version":1,"id":"%s","name":"%s","boot":"%s","created":"2026-11-21T18:30:00Z","ephemeral":%t,
"owner":{"pid":%d,"start":%d},"engine":"userspace","engine_why":"it was asked for","emulator":{"pid":%d,"start":%d},
"topology":{"name":"ring","nodes":[{"name":"a","site":"","role":"data"},{"name":"b","site":"","role":"data"}],"links":[]},
"nodes":[{"name":"a","addr":"10.77.0.1","dir":"%s","netns":"%s"},{"name":"b","addr":"10.77.0.2","dir":"%s","netns":"%s"}],
"data":"%s","control_groups":true,"settings":{},"seed":0}`

// A lab of an older version is reported, kept while it is persistent, not treated as the caller's own, and removed by
// clean-up.
func TestVersion1LabIsCleanedUp(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	for _, owned := range []bool{false, true} {
		t.Run(fmt.Sprintf("owned %t", owned), func(t *testing.T) {
			dir := t.TempDir()
			o := order{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
			m := here(t, o)
			name := fmt.Sprintf("older-%d", os.Getpid())
			made, err := machinetest.Bring(t.Context(), m, machine.PartSpec{Lab: name, Engine: "userspace"}, func(machinetest.Step) {})
			if err != nil {
				t.Fatal(err)
			}
			r := made.(*part).record
			text := fmt.Sprintf(version1, r.ID, r.Name, r.Boot, owned, r.Owner.PID, r.Owner.Start, r.Emulator.PID, r.Emulator.Start,
				r.Nodes[0].Dir, r.Nodes[0].Netns, r.Nodes[1].Dir, r.Nodes[1].Netns, r.Data)
			err = os.WriteFile(m.store.Lab(name).Path(journal.RecordFile), []byte(text), 0o600)
			if err := errors.Join(err, made.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), "another version") {
				t.Errorf("Open: %v", err)
			}
			found, err := m.List(t.Context())
			if err != nil || len(found) != 1 || !owned && (found[0].State != machine.Up || len(found[0].Facts.Nodes) != 2) {
				t.Errorf("found %+v, %v", found, err)
			}
			swept, err := m.Sweep(t.Context())
			if err != nil || (len(swept) == 1) != owned {
				t.Errorf("Sweep cleared %v, %v", swept, err)
			}
			if !owned {
				if err := m.Remove(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
			testhost.CheckLeftovers(t, name, dir)
		})
	}
}
