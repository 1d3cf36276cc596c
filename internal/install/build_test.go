package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/advice"
)

// compiled is a database whose build writes the server.
func compiled(disk int64, compile func(context.Context, Workshop) error, tools ...string) Recipe {
	r := demo
	r.Build = &Build{Source: "demo-source/sid", Cost: "a second", Disk: disk, Tools: tools, Hint: "sudo apt-get install them", Compile: compile}
	return r
}

func TestBuildNeedsConsent(t *testing.T) {
	for name, test := range map[string]struct {
		recipe Recipe
		build  bool
		want   error
		words  []string
	}{
		"not asked for":       {compiled(3e9, nil, "sh"), false, ErrBuild, []string{"demo-source/sid", "a second", "3.0 GB", "skerry install demo --build", "--from PATH"}},
		"no tools":            {compiled(1, nil, "sh", "no-such-cc|no-such-clang"), true, ErrNoTools, []string{"no-such-cc or no-such-clang", "apt-get install them"}},
		"no room":             {compiled(1<<60, nil, "no-such-cc|sh"), true, ErrNoSpace, []string{"SKERRY_CACHE"}},
		"all tools installed": {compiled(1, nil, "no-such-cc|sh"), true, nil, nil},
	} {
		err := Store{Dir: t.TempDir(), Build: test.build}.allowed(test.recipe)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
			continue
		}
		for _, w := range test.words {
			if text := err.Error() + advice.Of(err); !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %q", name, w, text)
			}
		}
	}
	if c := compiled(2e9, nil).command(); c != "skerry install demo --build (a second, 2.0 GB of disk)" {
		t.Errorf("advice to install: %q", c)
	}
}

// A build is interrupted, and the next one continues with its files.
func TestInterruptedBuildContinues(t *testing.T) {
	var steps []string
	s := Store{Dir: t.TempDir(), Progress: func(step string) { steps = append(steps, step) }}
	source := Package{Name: "demo-source", Version: "1", File: "demo-source_1_all.deb", SHA256: sum}
	broken := errors.New("the power failed")
	r := compiled(1, func(_ context.Context, w Workshop) error {
		half := filepath.Join(w.Work, "half")
		if _, err := os.Stat(half); err != nil {
			return errors.Join(os.WriteFile(half, nil, 0o644), broken)
		}
		w.Say("half was there, of %s", filepath.Base(w.Package))
		return os.WriteFile(filepath.Join(w.Root, "demo-server"), []byte("#!/bin/sh\n"), 0o755)
	})
	root := t.TempDir()
	if err := s.build(t.Context(), r, source, s.Dir, root); !errors.Is(err, broken) || !strings.Contains(advice.Of(err), "to resume") {
		t.Fatalf("an interrupted build: %v (%s)", err, advice.Of(err))
	}
	if err := s.build(t.Context(), r, source, s.Dir, root); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("demo: half was there, of demo-source_1_all.deb", steps[len(steps)-1]); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "build", "demo")); !errors.Is(err, os.ErrNotExist) {
		t.Error("build dependencies were not removed")
	}
	if !executable(filepath.Join(root, "demo-server")) {
		t.Error("the program was not built")
	}
}
