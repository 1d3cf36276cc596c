package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/cmd/internal/cli"
	"skerry/internal/docgen"
)

// The pages of docs/commands match the commands of all programs, and removed commands have no page.
func TestCommandPagesAreCurrent(t *testing.T) {
	want := map[string]string{}
	pages, err := docgen.CommandPages("../..", newRoot(&app{App: cli.New(nil, nil, os.Stderr)}))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages {
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
