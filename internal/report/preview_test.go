package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPreview writes reports of made-up runs to the directory SKERRY_PREVIEW, to be looked at.
func TestPreview(t *testing.T) {
	dir := os.Getenv("SKERRY_PREVIEW")
	if dir == "" {
		t.Skip("SKERRY_PREVIEW names no directory")
	}
	all := variants()
	all["paper"], all["small"] = paper, small
	for name, f := range all {
		_, err := WriteHTML(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".html"), open(t, f.make(t)))
		must(t, err)
	}
}
