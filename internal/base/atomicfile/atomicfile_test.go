package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	say := func(text string, then error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, then)
		}
	}
	broken := errors.New("broken")
	for _, step := range []struct {
		name  string
		write func(io.Writer) error
		fails error
		want  string // expected contents, "" for no file
	}{
		{"fails, no file yet", say("half", broken), broken, ""},
		{"new", say("one", nil), nil, "one"},
		{"fails, existing file", say("half", broken), broken, "one"},
		{"replaced", say("2", nil), nil, "2"},
	} {
		if err := Write(path, step.write); !errors.Is(err, step.fails) {
			t.Errorf("%s: %v, want %v", step.name, err, step.fails)
		}
		got, err := os.ReadFile(path)
		if string(got) != step.want || (err != nil) != (step.want == "") {
			t.Errorf("%s: contents %q (%v), want %q", step.name, got, err, step.want)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", st.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
	if err := Write(filepath.Join(path, "below"), say("", nil)); err == nil {
		t.Error("wrote a file below a file")
	}
}

// A file that other users may not read is never readable by them.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, text := range []string{"one", "2"} {
		err := Replace(path, 0o600, func(f *os.File) error {
			if st, err := f.Stat(); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("mode %v (%v) during the write", st.Mode(), err)
			}
			_, err := f.WriteString(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if got, _ := os.ReadFile(path); err != nil || string(got) != text || st.Mode() != 0o600 {
			t.Errorf("contents %q with mode %v (%v)", got, st.Mode(), err)
		}
	}
}

func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	for _, target := range []string{"one", "two"} {
		if err := Symlink(filepath.Join(dir, "current"), target); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(filepath.Join(dir, "current")); err != nil || got != target {
			t.Errorf("the link points to %q (%v), want %q", got, err, target)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Symlink(filepath.Join(dir, "folder"), "one"); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
}
