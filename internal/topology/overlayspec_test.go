package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOverlay(t *testing.T) {
	tests := []struct {
		text string
		want Overlay
	}{
		{"from: azure8", Overlay{}},
		{"from: azure8\noverlay: direct", Overlay{Kind: Direct}},
		{"from: azure8\noverlay: babel", Overlay{Kind: Babel}},
		{"from: azure8\noverlay: {kind: babel, babel: {hello: 40ms, update: 2s}}", Overlay{Kind: Babel, Hello: 40 * time.Millisecond, Update: 2 * time.Second}},
		{"from: azure8\noverlay: {kind: tinc, tinc: {ping_interval: 5s, ping_timeout: 2s}}", Overlay{Kind: Tinc, PingInterval: 5 * time.Second, PingTimeout: 2 * time.Second}},
	}
	for _, tt := range tests {
		got, err := build(t, tt.text, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got.Overlay); diff != "" {
			t.Errorf("%s:\n%s", tt.text, diff)
		}
	}
}

func TestOverlayMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"from: azure8\noverlay: ospf":                                       "not one of direct, babel, tinc",
		"from: azure8\noverlay: {kind: babel, babel: {hello: 1ms}}":         "hundredths of a second",
		"from: azure8\noverlay: {kind: tinc, tinc: {ping_timeout: 1500ms}}": "whole seconds",
		"from: azure8\noverlay: {kind: direct, babel: {hello: 1s}}":         "this tunes babel",
		"from: azure8\noverlay: {kind: babel, tinc: {ping_timeout: 1s}}":    "this tunes tinc",
		"from: azure8\noverlay: {kind: babel, babel: {hallo: 1s}}":          "hello",
	} {
		if _, err := build(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", text, err, want)
		}
	}
}

// Under an overlay a client reaches other sites through the nodes of its own.
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
