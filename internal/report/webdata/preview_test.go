package webdata_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/record"
	"skerry/internal/report/webdata"
	"skerry/test/testkit"
	"skerry/web"
)

// SKERRY_PREVIEW_RUNS=FOLDER,DIR... writes the reports of run directories into a folder, to view a page built by npm
// run build.
func TestPreview(t *testing.T) {
	folder, dirs, ok := strings.Cut(testkit.OptIn(t, "SKERRY_PREVIEW_RUNS",
		"FOLDER,DIR... writes the reports of run directories into a folder"), ",")
	if !ok {
		t.Fatal("SKERRY_PREVIEW_RUNS names a folder and no run directory")
	}
	page, err := web.ReportPage()
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.SplitSeq(dirs, ",") {
		d, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := webdata.Write(&b, page, d); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, d.Run.Name+".html"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
