package lab

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/machine/local"
	"skerry/internal/topology"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// Nothing remains of containers, volumes and loop devices, however the owner ends.
func TestKilledOwnerLeavesNoContainers(t *testing.T) {
	loops := func() int {
		files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	for name, o := range map[string]order{
		"volumes": {DieAt: "namespaces 1", Volume: topology.Volume{Kind: topology.OverlayVolume}},
		"containers": {DieAt: "service 0", Service: serviceOf(topology.HostPort, topology.Own),
			Volume: topology.Volume{Kind: topology.BindVolume}},
		"up": {Service: serviceOf(topology.NodePort, topology.Own), Volume: topology.Volume{Kind: topology.LoopVolume, Size: 32 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, "killed")
			if err := local.CheckVolume(o.Volume); err != nil {
				testkit.Lacks(t, testkit.LoopVolumes, err)
			}
			before := loops()
			whole := orderOf(c)
			whole.DieAt, whole.Service, whole.Volume = o.DieAt, o.Service, o.Volume
			p := startOwner(t, whole)
			<-p.ready
			p.killed()
			if len(testhost.FindLeftovers(t, c.Name, filepath.Dir(c.StateDir))) == 0 {
				t.Fatal("the owner created nothing")
			}
			mustSweep(t, c)
			for deadline := time.Now().Add(awhile); loops() > before && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			}
			if loops() > before {
				t.Errorf("%d loop devices are in use, %d were", loops(), before)
			}
		})
	}
}

// The directories of members are on volumes and those of other nodes are not. The node's processes see the data on
// them.
func TestMembersStoreDataOnVolumes(t *testing.T) {
	c := config(t, "vol")
	c.Topology.Volume, c.Members = topology.Volume{Kind: topology.LoopVolume, Size: 32 << 20}, []string{"n0", "n1"}
	if err := local.CheckVolume(c.Topology.Volume); err != nil {
		testkit.Lacks(t, testkit.LoopVolumes, err)
	}
	l := mustUp(t, c)
	for node, want := range map[string]bool{"n0": true, "n1": true, "n2": false} {
		out, err := shell(t, l, node, "grep -c \" $HOME ext4 \" /proc/self/mounts; echo kept >$HOME/x && cat $HOME/x")
		if err != nil || strings.HasPrefix(out, "1\n") != want || !strings.HasSuffix(out, "kept") {
			t.Errorf("%s: %q, %v; want a separate volume: %v", node, out, err, want)
		}
	}
}
