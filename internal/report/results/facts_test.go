package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every fault that is found in the documents stands on the page, which fills in what their own values give.
func TestFaultsOfTheDocuments(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(pages, "documents.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range facts {
		value, err := Folder(pages).Fact(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(text), "<!-- fact "+name+" -->"+value+"<!-- end -->") {
			t.Errorf("documents.md does not say that %s is %q", name, value)
		}
	}
	if _, err := Folder(pages).Fact("threads"); err == nil {
		t.Error("there is a fact that nobody found")
	}
}
