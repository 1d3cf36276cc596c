package event

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skerry/internal/record"
)

// Every kind has a summary, an effect and documentation.
func TestKindsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			if k.Name == "" || seen[k.Name] {
				t.Errorf("the name %q is invalid or belongs to another kind", k.Name)
			}
			seen[k.Name] = true
			if !strings.HasSuffix(k.Summary, ".") {
				t.Errorf("%q is not a sentence about the key", k.Summary)
			}
			if e := k.Effect; !slices.Contains([]record.Scope{record.OnLinks, record.OnNodes, record.OnStreams}, e.On) {
				t.Errorf("no chart can show an effect on %q", e.On)
			}
			if e := k.Effect; !slices.Contains([]record.Condition{record.Up, record.Changed, record.Down}, e.Makes) {
				t.Errorf("no chart can show the target state %q", e.Makes)
			}
			if !slices.Contains(Sections(), k.Docs.Section) || len(k.Docs.Rows) == 0 {
				t.Errorf("docs/events.md has no line for %+v", k.Docs)
			}
		})
	}
}

// The documented examples are valid in an experiment.
func TestKindExamplesParse(t *testing.T) {
	for _, k := range Kinds() {
		for _, row := range k.Docs.Rows {
			for _, example := range row.Examples {
				e := read(t, fmt.Sprintf("- {at: 0s, %s: %s}", k.Name, example))[0]
				if e.Kind() != k.Name {
					t.Errorf("%s: %s is a %q", k.Name, example, e.Kind())
				}
			}
		}
	}
}

// The dashboard's forms can be fired with selected targets.
func TestOffersCanBeFired(t *testing.T) {
	ids := map[string]bool{}
	for _, o := range Offers() {
		if ids[o.ID] {
			t.Errorf("two forms have the title %s", o.ID)
		}
		ids[o.ID] = true
		of := map[string]any{o.Targets: []string{map[record.Scope]string{record.OnLinks: "bergen~narvik", record.OnNodes: "narvik"}[o.On]}}
		if a := o.Amount; a != nil {
			of[a.Key] = a.Value
			if a.Number {
				of[a.Key] = json.Number(a.Value)
			}
		}
		text, err := json.Marshal(map[string]any{o.Kind: of, "for": "10s"})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Parse(text)
		if err == nil {
			err = CheckFired(e, stage(), "able", able)
		}
		if err != nil {
			t.Errorf("%s sends %s: %v", o.ID, text, err)
		}
	}
}

// The targets of a kind match the scope of its effect.
func TestEffectScopeMatchesTargets(t *testing.T) {
	s := stage()
	for _, k := range Kinds() {
		for _, row := range k.Docs.Rows {
			for _, example := range row.Examples {
				here := strings.NewReplacer("Pune", "oslo", "Seoul", "bergen", "Dubai", "narvik").Replace(example)
				a := read(t, fmt.Sprintf("- {at: 0s, %s: %s}", k.Name, here))[0].Spec.spec.draw(s, 0, nil, rand.New(rand.NewPCG(1, 2)))
				for _, target := range a.targets() {
					on := record.OnNodes
					switch {
					case strings.Contains(target, "~"):
						on = record.OnLinks
					case strings.Contains(target, ">"):
						on = record.OnStreams
					}
					if on != k.Effect.On {
						t.Errorf("%s happens to %s, not to %s", k.Name, target, k.Effect.On)
					}
				}
			}
		}
	}
}

// Events recorded before effects were recorded get the same effects as current ones.
func TestOldEventsHaveCurrentEffects(t *testing.T) {
	d := &record.Dir{Path: t.TempDir()}
	folder := filepath.Join(d.Path, "trials", "1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for i, k := range Kinds() {
		lines = fmt.Appendf(lines, "{\"kind\":%q,\"id\":%d,\"message\":\"\"}\n", k.Name, i+1)
	}
	if err := os.WriteFile(filepath.Join(folder, "events.jsonl"), lines, 0o644); err != nil {
		t.Fatal(err)
	}
	events, err := d.Events(1)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range Kinds() {
		if got := events[i].Effect; got != nil && *got != k.Effect { // nil for kinds that did not exist then
			t.Errorf("%s is read as %+v and written as %+v", k.Name, *got, k.Effect)
		}
	}
}

// consumers are files that process events of every kind by their effects.
var consumers = []string{
	"event.go", "kind.go", "check.go", "entry.go", "fire.go", "occurrence.go", "runner.go", "log.go",
	"../record/event.go", "../record/metric/metric.go", "../evidence/recovery/recovery.go",
	"../run/trial/events.go", "../experiment/validate.go",
	"../report/events.go", "../report/series/timeline.go",
	"../../web/src/charts/cloud.ts", "../../web/src/charts/effect.ts", "../../web/src/charts/bands.ts", "../../web/src/charts/map.ts",
	"../../web/src/dashboard/model.ts", "../../web/src/dashboard/livemap.ts", "../../web/src/dashboard/livecharts.ts",
	"../../web/src/dashboard/livepage.ts", "../../web/src/dashboard/firing.ts",
}

// words are names of kinds with another meaning in a file: the anchor of a text.
var words = map[string]string{"../../web/src/dashboard/livemap.ts": "start"}

func TestConsumersDoNotNameKinds(t *testing.T) {
	for _, path := range consumers {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range kindNames() {
			if regexp.MustCompile("[\"'`]"+name+"[\"'`]").Match(text) && words[path] != name {
				t.Errorf("%s handles the kind %s by name", path, name)
			}
		}
	}
}
