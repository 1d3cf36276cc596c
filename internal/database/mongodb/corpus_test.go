package mongodb

import (
	"errors"
	"os"
	"strings"
	"testing"

	"skerry/internal/load/ycsb"
)

// TestCorpusConnections: connection properties as people give them to YCSB.
func TestCorpusConnections(t *testing.T) {
	for file, want := range map[string]string{
		"mongodb-w0.properties":           "w=0: writes that no server acknowledges cannot be counted",
		"mongodb-w1-nojournal.properties": "",
	} {
		f, err := os.Open("../../../test/corpus/connections/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, err := ycsb.ReadProperties(f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseSettings(p)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}
