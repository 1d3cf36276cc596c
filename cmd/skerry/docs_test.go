package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/docgen"
)

// Every command has its page, as the command describes itself, and no page is left of a
// command that is no more.
func TestCommandPagesAreCurrent(t *testing.T) {
	want := map[string]string{}
	for name, page := range docgen.Commands(newRoot(&app{})) {
		want[name] = string(page)
	}
	got := map[string]string{}
	files, err := filepath.Glob("../../docs/commands/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(f)] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/commands is not what the commands say, run make docs: -want +got:\n%s", diff)
	}
}
