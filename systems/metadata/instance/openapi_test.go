package instance

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/server"
)

// nothing is a service that is never called.
type nothing struct{ metadata.Service }

// TestOpenAPI compares the paths of docs/metadata-openapi.yaml with the routes of a replica in a group that shares
// a tree.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metadata-openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string         `yaml:"operationId"`
			Responses   map[string]any `yaml:"responses"`
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var described []string
	for path, methods := range doc.Paths {
		for method, about := range methods {
			line := strings.ToUpper(method) + " " + path
			if about.OperationID == "" || about.Responses["200"] == nil {
				t.Errorf("%s has no operationId or no answer", line)
			}
			described = append(described, line)
		}
	}
	slices.Sort(described)

	var served []string
	for _, pattern := range server.New(nothing{}, server.Options{Own: nothing{}, Routes: members{}.routes()}).Patterns() {
		if pattern != "POST /v1/{op}" {
			served = append(served, pattern)
			continue
		}
		served = append(served, "POST /v1/batch")
		for _, op := range metadata.Ops() {
			if op.Internal() {
				served = append(served, "POST /v1/own/"+op.String())
			} else {
				served = append(served, "POST /v1/"+op.String())
			}
		}
	}
	slices.Sort(served)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("docs/metadata-openapi.yaml (-served +described):\n%s", diff)
	}
}
