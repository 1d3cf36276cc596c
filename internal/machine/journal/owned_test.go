package journal

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"skerry/test/testkit"
)

// In a directory like /tmp, another user may have created the path first.
func TestForeignStateDirectoryIsRejected(t *testing.T) {
	testkit.Need(t, testkit.Root)
	above := t.TempDir()
	if err := os.Chmod(above, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	const stranger = 54321
	dir := filepath.Join(above, "skerry")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if err := MakeOwnedDir(dir); err == nil {
		t.Error("accepted a directory of another user")
	}
	other := filepath.Join(above, "other")
	if err := os.Mkdir(other+newSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(other+newSuffix, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if err := MakeOwnedDir(other); err == nil {
		t.Error("accepted a file of another user at the path of the directory")
	}
}

// Several processes use a directory for a moment. The last one removes it, also if another one tried at the same time.
func TestLastUserRemovesOwnedDir(t *testing.T) {
	for range 60 {
		dir := filepath.Join(t.TempDir(), "owned")
		var users sync.WaitGroup
		for n := range 4 {
			users.Go(func() {
				own := filepath.Join(dir, string(rune('a'+n)))
				for range 20 {
					if err := MakeOwnedDir(dir); err != nil && !os.IsNotExist(err) {
						t.Error(err)
						return
					}
					if os.Mkdir(own, 0o700) == nil { // otherwise another user has removed the directory
						if err := os.Remove(own); err != nil {
							t.Error(err)
						}
						RemoveOwnedDir(dir)
					}
				}
			})
		}
		users.Wait()
		if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
			t.Fatalf("left: %v, %v", left, err)
		}
	}
}
