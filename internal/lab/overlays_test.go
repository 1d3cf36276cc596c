package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/lab/overlay/babel"
	"skerry/internal/topology"
)

// The registry must match the folders next to it. Forwarding is tested with package overlay, the documentation in
// package docgen.
func TestOverlayRegistry(t *testing.T) {
	names := map[string]bool{topology.Direct: true}
	for _, a := range Overlays() {
		if names[a.Name] || a.Name == "kind" {
			t.Errorf("%s is another's name", a.Name)
		}
		names[a.Name] = true
		options, ps := readOverlayOptions(a, nil)
		if len(ps) > 0 {
			t.Errorf("%s: its defaults are mistakes: %v", a.Name, ps)
		}
		if d := a.Docs; d.For == "" || d.Tunes == "" || d.Takes == "" || d.Notices == "" || options == nil {
			t.Errorf("%s: its documentation lacks something: %+v", a.Name, d)
		}
	}
	folders, err := filepath.Glob("overlay/*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if name := filepath.Base(f); name != "kinds" && !names[name] {
			t.Errorf("internal/lab/overlay/%s is not registered", name)
		}
	}
}

func TestCheckOverlay(t *testing.T) {
	for text, want := range map[string]string{
		"overlay: direct": "",
		"overlay: babel":  "",
		"overlay: {kind: babel, babel: {hello: 40ms}}":    "",
		"overlay: {kind: tinc, tinc: {ping_timeout: 2s}}": "",
		"overlay: ospf":   "2:10: overlay.kind: \"ospf\" is not one of direct, babel, tinc",
		"overlay: babble": "did you mean \"babel\"",
		"overlay: {kind: babel, babel: {hello: 1ms}}":         "2:39: overlay.babel.hello: babeld counts in hundredths of a second",
		"overlay: {kind: tinc, tinc: {ping_timeout: 1500ms}}": "whole seconds",
		"overlay: {kind: direct, babel: {hello: 1s}}":         "options of babel have no effect",
		"overlay: {kind: babel, tinc: {ping_timeout: 1s}}":    "overlay.tinc: options of tinc have no effect",
		"overlay: {kind: babel, babel: {hallo: 1s}}":          "unknown key \"hallo\"; did you mean \"hello\"?",
		"overlay: {kind: babel, babel: {hello: soon}}":        "overlay.babel.hello: ",
		"overlay: {kind: babel, bable: {hello: 1s}}":          "unknown key \"bable\"",
	} {
		file := filepath.Join(t.TempDir(), "cloud.yaml")
		if err := os.WriteFile(file, []byte("from: azure8\n"+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := topology.Load(file, CheckOverlay)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
		if err != nil && strings.Count(err.Error(), "overlay.babel") > 1 {
			t.Errorf("%s: the path is reported twice: %v", text, err)
		}
	}
}

// Settings that a topology omits have the overlay's defaults.
func TestOptions(t *testing.T) {
	options, ps := readOverlayOptions(babel.Definition, map[string]any{"hello": "40ms"})
	o, ok := options.(*babel.Options)
	if len(ps) > 0 || !ok || time.Duration(o.Hello) != 40*time.Millisecond || time.Duration(o.Update) != time.Second {
		t.Errorf("options %+v, %v", options, ps)
	}
	if _, err := NewOverlay(t.Context(), topology.Overlay{Kind: "ospf"}); err == nil {
		t.Error("unknown overlay ospf was accepted")
	}
	if over, err := NewOverlay(t.Context(), topology.Overlay{}); over != nil || err != nil {
		t.Errorf("direct is %v, %v", over, err)
	}
}
