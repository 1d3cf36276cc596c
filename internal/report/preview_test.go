package report

import (
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/testkit"
)

// TestPreview writes reports of made-up runs to the directory SKERRY_PREVIEW, to be looked at.
func TestPreview(t *testing.T) {
	dir := testkit.Asked(t, "SKERRY_PREVIEW", "a directory that made-up reports are written to")
	all := variants()
	all["paper"], all["small"] = paper, small
	for name, f := range all {
		_, err := WriteHTML(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".html"), open(t, f.make(t)))
		must(t, err)
	}
}
