package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Readers see the old file or the new one, on the node as well.
func testWhole(t *testing.T, h host.Host) {
	dir := folder(t, h)
	f, path := h.Files(), filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o755} {
		text := fmt.Sprintf("a file of %v", mode)
		if err := f.Write(t.Context(), path, mode, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat(t.Context(), path)
		if err != nil || info.Mode != mode || info.Size != int64(len(text)) || time.Since(info.Modified).Abs() > time.Hour {
			t.Errorf("%+v, %v; want the mode %v and %d bytes", info, err, mode, len(text))
		}
		if got := output(t, h, script("cat "+path)); got != text {
			t.Errorf("a program reads %q", got)
		}
	}
	broken := errors.New("the source failed")
	source := io.MultiReader(strings.NewReader("half of "), errorReader{broken})
	if err := f.Write(t.Context(), path, 0o644, source); !errors.Is(err, broken) {
		t.Errorf("a failing source: %v", err)
	}
	if got, err := files.Read(t.Context(), f, path); err != nil || got != "a file of -rwxr-xr-x" {
		t.Errorf("after a failed write: got %q, %v", got, err)
	}
	if list, err := f.List(t.Context(), dir); err != nil || len(list) != 1 {
		t.Errorf("entries of the folder: %+v, %v", list, err)
	}
}

type errorReader struct{ error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.error }

// Errors of missing files wrap fs.ErrNotExist.
func testMissing(t *testing.T, h host.Host) {
	f, path := h.Files(), filepath.Join(folder(t, h), "nowhere", "file")
	_, errOpen := f.Open(t.Context(), path, 0)
	_, errStat := f.Stat(t.Context(), path)
	_, errList := f.List(t.Context(), path)
	_, errSpace := f.Space(t.Context(), path)
	for what, err := range map[string]error{
		"Open": errOpen, "Stat": errStat, "List": errList, "Space": errSpace,
		"Write":  f.Write(t.Context(), path, 0o644, strings.NewReader("")),
		"Append": f.Append(t.Context(), path, nil),
		"Rename": f.Rename(t.Context(), path, filepath.Join(h.Dir(), "there")),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want fs.ErrNotExist with the path", what, err)
		}
	}
	if err := f.Remove(t.Context(), path); err != nil {
		t.Errorf("Remove: %v", err)
	}
}

func testFolders(t *testing.T, h host.Host) {
	f, ctx := h.Files(), t.Context()
	dir := folder(t, h)
	a, b := filepath.Join(dir, "a[1]"), filepath.Join(dir, "b")
	for _, err := range []error{
		f.MakeDir(ctx, filepath.Join(a, "deep", "deeper")), f.MakeDir(ctx, a),
		files.WriteText(ctx, f, filepath.Join(a, "deep", "x.txt"), "x"), files.WriteText(ctx, f, filepath.Join(a, "deep", "y.txt"), "yy"),
		files.Copy(ctx, f, b, f, a), f.Rename(ctx, filepath.Join(b, "deep"), filepath.Join(b, "moved")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.List(ctx, filepath.Join(b, "moved"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range list {
		got = append(got, fmt.Sprint(filepath.Base(i.Path), " ", i.Mode.IsDir()))
	}
	if text := strings.Join(got, ", "); text != "deeper true, x.txt false, y.txt false" {
		t.Errorf("contents of the copy: %s", text)
	}
	if found := files.Glob(ctx, f, filepath.Join(b, "*", "?.txt")); strings.Join(found, " ") != filepath.Join(b, "moved", "x.txt")+" "+filepath.Join(b, "moved", "y.txt") {
		t.Errorf("the pattern matches %v", found)
	}
	if err := f.Rename(ctx, b, a); !errors.Is(err, fs.ErrExist) {
		t.Errorf("renaming over a folder with files: %v, want fs.ErrExist", err)
	}
	if err := f.Remove(ctx, a); err != nil || files.Exists(ctx, f, a) {
		t.Errorf("the removed file still exists: %v", err)
	}
	if err := files.Empty(ctx, f, b); err != nil {
		t.Error(err)
	}
	if list, err := f.List(ctx, b); err != nil || len(list) != 0 {
		t.Errorf("entries of the emptied folder: %+v, %v", list, err)
	}
}

// UID that exists on every machine.
const nobody = 65534

// Files given to a user are owned by that user for the node's programs, also after Write.
func testOwners(t *testing.T, h host.Host) {
	f, ctx := h.Files(), t.Context()
	dir := filepath.Join(folder(t, h), "given")
	file := filepath.Join(dir, "file")
	for _, err := range []error{
		f.MakeDir(ctx, dir), files.WriteText(ctx, f, file, "old"), f.Own(ctx, dir, nobody, nobody), files.WriteText(ctx, f, file, "new"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := script("cat file && echo more >>file && echo mine >own && cat file own")
	c.Dir, c.UID, c.GID = dir, nobody, nobody
	if got := output(t, h, c); got != "newnewmore\nmine" {
		t.Errorf("the new owner read %q", got)
	}
}

// Large files are copied completely, and can be read from an offset.
func testLarge(t *testing.T, h host.Host) {
	f, ctx, path := h.Files(), t.Context(), filepath.Join(folder(t, h), "large")
	const size = 48 << 20
	pattern := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	pieces := make([]io.Reader, size/len(pattern))
	for i := range pieces {
		pieces[i] = bytes.NewReader(pattern)
	}
	if err := f.Write(ctx, path, 0o600, io.MultiReader(pieces...)); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, size/2 + 5, size, size + 1} {
		r, err := f.Open(ctx, path, offset)
		if err != nil {
			t.Fatal(err)
		}
		var first [4]byte
		n, _ := io.ReadFull(r, first[:])
		rest, err := io.Copy(io.Discard, r)
		if got := int64(n) + rest; got != max(0, size-offset) || err != nil {
			t.Errorf("from offset %d: got %d bytes, %v", offset, got, err)
		}
		if want := pattern[offset%16 : offset%16+4]; offset < size && !bytes.Equal(first[:], want) {
			t.Errorf("from offset %d: got %q, want %q", offset, first, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	reading, cancel := context.WithCancel(ctx)
	r, err := f.Open(reading, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel()
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) || n == size {
		t.Errorf("a canceled read: %d bytes, %v", n, err)
	}
}

// A growing log is read up to its current end.
func testGrowing(t *testing.T, h host.Host) {
	f, ctx, path := h.Files(), t.Context(), filepath.Join(folder(t, h), "log")
	want := ""
	for i := range 3 {
		line := fmt.Sprintln("line", i)
		if err := f.Append(ctx, path, []byte(line)); err != nil {
			t.Fatal(err)
		}
		want += line
		if got, err := files.Read(ctx, f, path); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func testSpace(t *testing.T, h host.Host) {
	s, err := h.Files().Space(t.Context(), h.Dir())
	if err != nil || s.Disk == "" || s.Free <= 0 || s.Free > s.Size {
		t.Errorf("space %+v, %v", s, err)
	}
	if again, err := h.Files().Space(t.Context(), folder(t, h)); err != nil || again.Disk != s.Disk {
		t.Errorf("a subfolder is on %q, %v; want %q", again.Disk, err, s.Disk)
	}
	if proc, err := h.Files().Space(t.Context(), "/proc"); err != nil || proc.Disk == s.Disk {
		t.Errorf("/proc is on %q, %v", proc.Disk, err)
	}
}

// No operation starts after its context has ended.
func testTooLate(t *testing.T, h host.Host) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := folder(t, h)
	f, path := h.Files(), filepath.Join(dir, "late")
	_, errOpen := f.Open(ctx, dir, 0)
	_, errStat := f.Stat(ctx, dir)
	_, errList := f.List(ctx, dir)
	_, errSpace := f.Space(ctx, dir)
	for what, err := range map[string]error{
		"Open": errOpen, "Stat": errStat, "List": errList, "Space": errSpace,
		"Write": files.WriteText(ctx, f, path, ""), "Append": f.Append(ctx, path, nil), "MakeDir": f.MakeDir(ctx, path),
		"Remove": f.Remove(ctx, dir), "Rename": f.Rename(ctx, dir, path),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
	if files.Exists(t.Context(), f, path) {
		t.Error("the folder was created nevertheless")
	}
}
