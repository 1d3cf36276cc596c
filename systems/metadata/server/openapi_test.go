package server_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/rebalance"
)

// TestOpenAPI compares docs/metadata-openapi.yaml with the fields and error codes; package instance compares the
// paths.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metadata-openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"Command": protocol.CommandJSON{}, "Entry": protocol.Entry{}, "Result": protocol.Result{}, "Error": protocol.Error{},
		"Batch": protocol.Batch{}, "Results": protocol.Results{}, "Member": protocol.Member{},
		"Status": protocol.Status{}, "Transaction": metadata.Txn{},
		"Load": rebalance.LoadReport{}, "DirectoryLoad": rebalance.Directory{}, "Balancer": rebalance.Status{},
	} {
		var fields []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, tag)
		}
		slices.Sort(fields)
		if diff := cmp.Diff(fields, keys(doc.Components.Schemas[name].Properties)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, code := range doc.Components.Schemas["Error"].Properties["code"].Enum {
		if got := metadata.ErrorCode(metadata.DecodeError(code, "")); got != code {
			t.Errorf("the code %s is parsed as %s", code, got)
		}
	}
}

func keys[V any](m map[string]V) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
