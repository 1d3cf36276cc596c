package files

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestCopyTakesFoldersAndPlainFiles(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	for _, name := range []string{"a", "sub/b", "sub/deeper/c"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte("this is "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(from, "sub/socket")) // of a server that runs there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Copy(t.Context(), Local{}, to, Local{}, from); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "sub/b", "sub/deeper/c"} {
		if text, err := Read(t.Context(), Local{}, filepath.Join(to, name)); err != nil || text != "this is "+name {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if Exists(t.Context(), Local{}, filepath.Join(to, "sub/socket")) {
		t.Error("the socket was copied")
	}
}
