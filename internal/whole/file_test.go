package whole

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestFile(t *testing.T) {
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
		want  string // "" is no file
	}{
		{"fails, no file yet", say("half", broken), broken, ""},
		{"new", say("one", nil), nil, "one"},
		{"fails, a file there", say("half", broken), broken, "one"},
		{"replaced", say("2", nil), nil, "2"},
	} {
		if err := File(path, step.write); !errors.Is(err, step.fails) {
			t.Errorf("%s: %v, want %v", step.name, err, step.fails)
		}
		got, err := os.ReadFile(path)
		if string(got) != step.want || (err != nil) != (step.want == "") {
			t.Errorf("%s: holds %q (%v), want %q", step.name, got, err, step.want)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", st.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q (%v)", left, err)
	}
	if err := File(filepath.Join(path, "below"), say("", nil)); err == nil {
		t.Error("a file below a file was written")
	}
}
