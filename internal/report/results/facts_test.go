package results

import (
	"slices"
	"testing"

	"skerry/internal/report/results/page"
)

// Every fault that is found in the documents stands on the page, which fills in what their own values give.
func TestFaultsOfTheDocuments(t *testing.T) {
	markers := page.Markers(templates(t)["documents"+tmplExt])
	for name := range facts {
		value, err := folder.Fact(name)
		if err != nil || value == "" {
			t.Errorf("%s: %q, %v", name, value, err)
		}
		if !slices.Contains(markers, "<!-- fact "+name+" -->") {
			t.Errorf("documents.md does not say that %s is %q", name, value)
		}
	}
	if _, err := folder.Fact("threads"); err == nil {
		t.Error("there is a fact that nobody found")
	}
}
