package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/cmd/internal/cli"
	"skerry/internal/docgen/manual"
)

// The pages of docs/commands match the commands.
func TestCommandPagesAreCurrent(t *testing.T) {
	for name, want := range manual.NewPages(newRoot(&app{App: cli.New(nil, nil, os.Stderr)})).Pages {
		got, err := os.ReadFile(filepath.Join("../../docs/commands", name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("docs/commands/%s is outdated (%v), run make docs: -want +got:\n%s", name, err, diff)
		}
	}
}
