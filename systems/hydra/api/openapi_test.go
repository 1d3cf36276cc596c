package api

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/bearer"
)

// document is the part of the OpenAPI document that is compared with the server.
type document struct {
	Paths      map[string]map[string]any `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct {
				Enum []string `yaml:"enum"`
			} `yaml:"properties"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

func read(t *testing.T) document {
	t.Helper()
	var d document
	if err := yaml.Unmarshal(OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentAgreesWithRoutes(t *testing.T) {
	var served, described []string
	for _, r := range New(Config{}).routes() {
		line := r.method + " " + r.path
		if r.scope == bearer.Public {
			line += " public"
		}
		served = append(served, line)
	}
	for path, methods := range read(t).Paths {
		for method, about := range methods {
			o, ok := about.(map[string]any)
			if !ok { // parameters
				continue
			}
			line := strings.ToUpper(method) + " " + path
			if o["security"] != nil {
				line += " public"
			}
			if o["operationId"] == nil || o["responses"].(map[string]any)["200"] == nil {
				t.Errorf("%s has no operationId or no response", line)
			}
			described = append(described, line)
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if d := cmp.Diff(served, described); d != "" {
		t.Error(d)
	}
}

func TestDocumentAgreesWithCodes(t *testing.T) {
	described := read(t).Components.Schemas["Problem"].Properties["code"].Enum
	var known []string
	for code := range statuses {
		known = append(known, code)
	}
	slices.Sort(known)
	slices.Sort(described)
	if d := cmp.Diff(known, described); d != "" {
		t.Error(d)
	}
}

func TestDocumentInDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/hydra-openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(OpenAPI) {
		t.Error("docs/hydra-openapi.yaml is not systems/hydra/api/openapi.yaml: copy it")
	}
}
