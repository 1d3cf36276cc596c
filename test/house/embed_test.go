package house

import (
	"os/exec"
	"path"
	"strings"
	"testing"

	"skerry/test/testkit"
)

// Go does not compile a package whose go:embed pattern matches no file. A pattern that only a build output matches
// compiles in a checkout where make web ran and fails in a new clone.
func TestEmbeddedFilesAreInRepository(t *testing.T) {
	testkit.Need(t, testkit.Git)
	out, err := exec.Command("git", "-C", checkout, "ls-files").Output()
	if err != nil {
		t.Fatalf("listing the files of the repository: %v", err)
	}
	tracked := strings.Fields(string(out))
	files, err := ReadFiles(checkout)
	if err != nil {
		t.Fatal(err)
	}
	patterns := 0
	for _, file := range files {
		for _, line := range file.Text {
			_, list, isEmbed := strings.Cut(line, "//go:embed ")
			if !isEmbed || file.Test {
				continue
			}
			for _, pattern := range strings.Fields(list) {
				patterns++
				if !matchesTracked(t, path.Join(path.Dir(file.Name), strings.TrimPrefix(pattern, "all:")), tracked) {
					t.Errorf("%s embeds %s, and the repository has no such file", file.Name, pattern)
				}
			}
		}
	}
	if patterns == 0 {
		t.Error("found no go:embed line")
	}
}

// matchesTracked reports whether a tracked file matches the pattern or lies in a folder of that name.
func matchesTracked(t *testing.T, pattern string, tracked []string) bool {
	for _, file := range tracked {
		ok, err := path.Match(pattern, file)
		if err != nil {
			t.Fatalf("pattern %s: %v", pattern, err)
		}
		if ok || strings.HasPrefix(file, pattern+"/") {
			return true
		}
	}
	return false
}
