package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
)

// big is a row of 32 KiB.
var big = map[string]string{"text": strings.Repeat("x", 32<<10)}

// cutLoose writes big rows through a client until the second cloud is reported as detached.
func (w *world) cutLoose(c *hydraclient.Client) {
	w.t.Helper()
	const rows = 400
	var last api.Status
	for i := range rows {
		if _, err := c.Put(w.t.Context(), "t", fmt.Sprintf("lost-%04d", i), big); err != nil {
			w.t.Fatalf("row %d, which a majority could accept: %v", i, err)
		}
		s, err := c.Status(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Log.Bytes > w.maxLog+w.maxLog/4 {
			w.t.Fatalf("the log has %d of %d bytes", s.Log.Bytes, w.maxLog)
		}
		last = s
		for _, d := range s.Databases {
			if d.Cloud == "gcp" && d.State == api.StateCutLoose {
				w.t.Logf("after %d rows: %+v, log of %d bytes", i+1, d, s.Log.Bytes)
				return
			}
		}
	}
	w.t.Fatalf("after %d rows: %+v", rows, last)
}

// same compares the databases of the clouds.
func (w *world) same() {
	w.t.Helper()
	k := &work{w: w}
	var all []map[string]map[string]string
	for _, c := range w.layout.Clouds {
		data := w.data(deploy.HostPort(c.Members[0], deploy.PortAPI))
		defer data.Close()
		all = append(all, contents(k, data))
	}
	if d := cmp.Diff(all[0], all[1]); d != "" {
		w.t.Errorf("the clouds differ: %s", d[:min(len(d), 2000)])
	}
	w.t.Logf("both clouds have %d rows", len(all[0]["t"]))
}

// A cloud that is unavailable for longer than the log reaches is detached. The log stays within its limit, and the
// others continue. When the cloud returns, it is rebuilt from a snapshot.
func TestUnavailableCloudIsDetached(t *testing.T) {
	faultDuration(t)
	w := build(t, "", smallLog, nil)
	c := w.data(deploy.HostPort(w.layout.Clouds[0].Members[0], deploy.PortAPI))
	defer c.Close()
	if err := c.CreateTable(t.Context(), "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	w.awaitReport(c, "gcp")
	f := w.cut("cut off gcp", link.Quality{Down: true}, true, func(site, _ string) bool { return site == "gcp" })
	if err := f.apply(); err != nil {
		t.Fatal(err)
	}
	w.cutLoose(c)
	if err := f.mend(); err != nil {
		t.Fatal(err)
	}
	t.Logf("rebuilt %.1f s after its return", w.awaitRecovery().Seconds())
	w.same()
}

// awaitReport waits until the database of a cloud has reported what it has applied: a status calls a cloud without a report
// unknown, not detached.
func (w *world) awaitReport(c *hydraclient.Client, cloud string) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s, err := c.Status(w.t.Context())
		if err != nil || time.Now().After(deadline) {
			w.t.Fatalf("waiting for a report of %s: %+v, %v", cloud, s.Databases, err)
		}
		if slices.ContainsFunc(s.Databases, func(d api.Database) bool { return d.Cloud == cloud && d.Applied > 0 }) {
			return
		}
	}
}

// A database on a full file system keeps its data and reports the error. The log, other clouds and clients continue,
// and the database continues when space is available.
func TestDatabaseWithFullDiskRecovers(t *testing.T) {
	faultDuration(t)
	dir := dataDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := build(t, "", smallLog, map[string]string{"gcp": "sqlite:" + dir + "/hydra.db"})
	here := w.data(deploy.HostPort(w.layout.Clouds[0].Members[0], deploy.PortAPI))
	there := w.data(deploy.HostPort(w.layout.Clouds[1].Members[0], deploy.PortAPI))
	defer here.Close()
	defer there.Close()
	if err := here.CreateTable(t.Context(), "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := here.Put(t.Context(), "t", fmt.Sprintf("full-%04d", i), big); err != nil {
			t.Fatalf("row %d, which a majority could accept: %v", i, err)
		}
	}
	var problem string
	var applied uint64
	for deadline := time.Now().Add(patience); problem == ""; time.Sleep(50 * time.Millisecond) {
		s, err := there.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(s.Databases, func(d api.Database) bool { return d.Cloud == "gcp" && d.State == api.StateDown }); i >= 0 {
			problem, applied = s.Databases[i].Problem, s.Databases[i].Applied
		}
		if time.Now().After(deadline) {
			t.Fatalf("no member reports the full disk: %+v", s)
		}
	}
	t.Logf("reported problem: %s", problem)
	if !strings.Contains(problem, "full") {
		t.Errorf("reported problem: %q", problem)
	}
	// The other cloud answers requests there, and writes succeed.
	if _, err := there.Put(t.Context(), "t", "meanwhile", map[string]int{"n": 1}); err != nil {
		t.Error(err)
	}
	var meta hydraclient.Meta
	if _, err := there.Get(t.Context(), "t", "meanwhile", hydraclient.WithMeta(&meta)); err != nil || meta.Cloud != "aws" {
		t.Errorf("reading through %+v: %v", meta, err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Logf("all entries from index %d on were applied %.1f s after the disk had free space", applied, w.awaitRecovery().Seconds())
	w.same()
}
