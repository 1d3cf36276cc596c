package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/base/advice"
)

func TestRelink(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"etc/java", "usr/lib/jvm/conf"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/java/jvm.cfg"), []byte("server"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"usr/lib/jvm/conf/jvm.cfg": "/etc/java/jvm.cfg", "usr/lib/jvm/conf/hosts": "/etc/hosts", "usr/lib/jvm/conf/near": "jvm.cfg",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := relink(root); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]string{
		"usr/lib/jvm/conf/jvm.cfg": "../../../../etc/java/jvm.cfg", "usr/lib/jvm/conf/hosts": "/etc/hosts", "usr/lib/jvm/conf/near": "jvm.cfg",
	} {
		if got, err := os.Readlink(filepath.Join(root, link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v; want %q", link, got, err, want)
		}
	}
}

// The output of a build function is installed.
func TestPrepare(t *testing.T) {
	s, r := Store{Dir: t.TempDir()}, demo
	fail := errors.New("no compiler")
	r.Prepare = func(context.Context, string, func(string)) error { return fail }
	if _, err := s.Install(t.Context(), r); !errors.Is(err, fail) {
		t.Errorf("error %v, want the function's error", err)
	}
	r.Prepare = func(_ context.Context, root string, progress func(string)) error {
		progress("compiling")
		return os.WriteFile(filepath.Join(root, "demo-server"), []byte("#!/bin/sh\necho demo 7\n"), 0o755)
	}
	m, err := s.Install(t.Context(), r)
	if err != nil || m.Version != "7" || m.Source != FromBuild {
		t.Errorf("installed %+v, %v", m, err)
	}
}

// The database is only available from its vendor.
func TestManual(t *testing.T) {
	s, r := Store{Dir: t.TempDir()}, demo
	r.Manual, r.Optional = "the archive demo-*.tgz from https://demo.invalid and unpack it", []string{"demo-router"}
	_, err := s.Install(t.Context(), r)
	if next := advice.Of(err); !errors.Is(err, ErrManual) || !strings.Contains(next, "demo.invalid") || !strings.Contains(next, "skerry install demo --from PATH") {
		t.Errorf("error %v, advice %q", err, next)
	}
	own := build(t, "demo 8")
	if _, err := s.Register(t.Context(), r, own); err != nil {
		t.Fatal(err)
	}
	in, err := s.Find(t.Context(), r, "")
	if err != nil || len(in.Programs) != 1 {
		t.Errorf("found %+v, %v without the optional program", in, err)
	}
	if err := os.WriteFile(filepath.Join(own, "demo-router"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if in, err = s.Find(t.Context(), r, ""); err != nil || in.Programs["demo-router"] == "" {
		t.Errorf("found %+v, %v with the optional program", in, err)
	}
}
