package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Sweeps at any moment never find the directory of a living process, and no directory fails because of sweeps.
func TestSweepSparesNewDirectories(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data", "clusters")
	stop := make(chan struct{})
	var sweeps, users sync.WaitGroup
	for range 2 {
		sweeps.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := SweepLockedDirs(t.Context(), root, func(c *LockedDir) (string, error) { return "", fmt.Errorf("swept %s", c.Path) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for worker := range 2 {
		users.Go(func() {
			for i := range 200 {
				c, err := NewLockedDir(t.Context(), root, fmt.Sprint(worker, "-", i))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(c.Path); err != nil {
					t.Error(err)
				}
				if err := c.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	close(stop)
	sweeps.Wait()
	if _, err := os.Stat(filepath.Dir(root)); err == nil {
		t.Errorf("%s was left", filepath.Dir(root))
	}
}

// The directory above the root has the directories of labs, whose servers run as other users.
func TestOtherUsersReachDirectoryAboveRoot(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	c, err := NewLockedDir(t.Context(), filepath.Join(data, "clusters"), "one")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Remove(t.Context())
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if m := info.Mode().Perm(); m&0o005 != 0o005 {
		t.Errorf("%s has mode %v", data, m)
	}
}
