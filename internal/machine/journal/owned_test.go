package journal

import (
	"os"
	"path/filepath"
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
