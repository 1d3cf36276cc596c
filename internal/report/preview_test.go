package report

import (
	"os"
	"testing"
)

// TestPreview writes reports of made-up runs to the directory SKERRY_PREVIEW, to be looked at.
func TestPreview(t *testing.T) {
	dir := os.Getenv("SKERRY_PREVIEW")
	if dir == "" {
		t.Skip("SKERRY_PREVIEW names no directory")
	}
	for name, f := range map[string]fixture{"quickstart": quickstart, "small": small, "paper": paper} {
		_, err := WriteHTML(dir+"/"+name+".html", open(t, f.make(t)))
		must(t, err)
	}
}
