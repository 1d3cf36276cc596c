package topology

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverlay(t *testing.T) {
	for text, want := range map[string]Overlay{
		"from: azure8":                                       {},
		"from: azure8\noverlay: direct":                      {Kind: Direct},
		"from: azure8\noverlay: babel":                       {Kind: "babel"},
		"from: azure8\noverlay: {kind: x, x: {hello: 40ms}}": {Kind: "x", Settings: map[string]map[string]any{"x": {"hello": "40ms"}}},
		"from: azure8\noverlay: {kind: x, y: {a: 1, b: 2s}}": {Kind: "x", Settings: map[string]map[string]any{"y": {"a": int64(1), "b": "2s"}}},
	} {
		got, err := build(t, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got.Overlay); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

// A recorded experiment has the keys of the file.
func TestOverlayAsJSON(t *testing.T) {
	for want, spec := range map[string]Spec{
		`{"from":"azure8"}`:                            {From: "azure8"},
		`{"from":"azure8","overlay":{"kind":"babel"}}`: {From: "azure8", Overlay: OverlaySpec{Kind: "babel"}},
		`{"overlay":{"babel":{"hello":"40ms"},"kind":"babel"}}`: {
			Overlay: OverlaySpec{Kind: "babel", Settings: map[string]map[string]any{"babel": {"hello": "40ms"}}}},
	} {
		if got, err := json.Marshal(spec); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

// With an overlay, a client reaches other sites through the nodes of its own site.
func TestClientUnderOverlay(t *testing.T) {
	cloud, err := build(t, "from: azure8\nmesh: {links: 64}\noverlay: babel", nil)
	if err != nil {
		t.Fatal(err)
	}
	cloud, err = WithClient(cloud, "Singapore")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, l := range cloud.Links {
		if l.A == ClientName || l.B == ClientName {
			ids = append(ids, l.ID)
		}
	}
	if diff := cmp.Diff([]string{"client~Singapore"}, ids); diff != "" {
		t.Error(diff)
	}
}
