package ndb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/test/testkit"
)

// A package of Debian is unpacked: an archive in an archive.
func TestUnpack(t *testing.T) {
	testkit.Need(t, testkit.DpkgDeb)
	tree := t.TempDir()
	folder := filepath.Join(tree, filepath.Dir(sourceFile))
	files := map[string]string{
		"DEBIAN/control": "Package: mysql-source\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@invalid>\nDescription: source\n",
		sourceFile: archive(t, map[string]string{
			"mysql-9.7/CMakeLists.txt": "top", "mysql-9.7/storage/ndb/CMakeLists.txt": "ndb", "mysql-9.7/storage/ndb/test/t.cpp": "kept",
			"mysql-9.7/mysql-test/CMakeLists.txt": "test", "mysql-9.7/mysql-test/t/1.test": "test", "mysql-9.7/builddir/a.o": "object",
		}),
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deb, to := filepath.Join(t.TempDir(), "source.deb"), filepath.Join(t.TempDir(), "src")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-Znone", "-b", tree, deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	if err := unpack(t.Context(), deb, to); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		got[strings.TrimPrefix(path, to+"/")] = string(text)
		return err
	})
	want := map[string]string{"CMakeLists.txt": "top", "storage/ndb/CMakeLists.txt": "ndb", "storage/ndb/test/t.cpp": "kept"}
	for _, f := range standIns {
		want[f] = ""
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	if err := os.WriteFile(deb, []byte("no package"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unpack(t.Context(), deb, to); err == nil || !strings.Contains(err.Error(), sourceFile) {
		t.Errorf("a file that is not a package: %v", err)
	}
}

// archive is a tar.gz of files.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestProgress(t *testing.T) {
	var shares []int
	p := &progress{say: func(n int) { shares = append(shares, n) }}
	for _, text := range []string{"-- Configuring\n[1/643] Building C\n[40/", "643] Building CXX object\n[ 7%] Built target zlib\n",
		"[ 12%] Building\n[643/643] Linking CXX executable\n[x/y] no\n[3/0] no\n"} {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if d := cmp.Diff([]int{6, 12, 100}, shares); d != "" {
		t.Error(d)
	}
}

// The error of a failed build contains the lines with the reason.
func TestLogged(t *testing.T) {
	log := filepath.Join(t.TempDir(), "build.log")
	err := logged(t.Context(), log, t.TempDir(), nil, "sh", "-c", "echo one.cpp:3: error: no such type >&2; seq 5000; echo '[9/12] Building error/one.cpp'; exit 2")
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "one.cpp:3: error: no such type") || strings.Contains(err.Error(), "4999") || strings.Contains(err.Error(), "Building") {
		t.Errorf("error: %v", err)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.HasSuffix(string(text), "\n5000\n[9/12] Building error/one.cpp\n") {
		t.Errorf("the log: %d bytes, %v", len(text), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := logged(ctx, log, t.TempDir(), nil, "sh", "-c", "exit 2"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "error.cpp") {
		t.Errorf("an interrupted build: %v", err)
	}
	if got := failureLines("a\nb\nc"); got != "a\nb\nc" {
		t.Errorf("excerpt of a log without errors: %q", got)
	}
}
