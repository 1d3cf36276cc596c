package strict

import (
	"reflect"
	"testing"
)

// meal is a drink or a dish.
type meal struct {
	At   string `yaml:"at"`
	What course `yaml:",choice"`
}

func (meal) Alternatives() [][]string { return [][]string{{"drink", "dish"}} }

type course struct {
	key   string
	value any
}

type dish struct {
	Name  string `yaml:"name" jsonschema:"required"`
	Count int    `yaml:"count" jsonschema:"default=2"`
}

func (dish) Shorthand() string { return "name" }

func (course) Choices() []Choice {
	return []Choice{{"drink", reflect.TypeFor[person]()}, {"dish", reflect.TypeFor[dish]()}}
}

func (c *course) Choose(key string, value reflect.Value) { *c = course{key, value.Interface()} }

func TestOneOfSeveralKeys(t *testing.T) {
	for text, want := range map[string]course{
		"{at: noon, dish: fish}":         {"dish", dish{"fish", 2}},
		"{dish: {name: soup, count: 1}}": {"dish", dish{"soup", 1}},
		"{at: noon}":                     {},
		"{dish: }":                       {},
	} {
		var got meal
		if err := Decode(parsed(t, text), &got, "").AsError(); got.What != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got.What, err)
		}
	}
}

func parsed(t *testing.T, text string) *Node {
	t.Helper()
	root, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestKeysOfAChoiceAreTheStructs(t *testing.T) {
	for text, want := range map[string]string{
		"{fish: 1}":           `f:1:2: unknown key "fish"; did you mean "dish"?`,
		"{dish: x, drink: y}": "f:1:11: dish and drink exclude each other; keep one of them",
		"{dish: {count: 3}}":  "f:1:9: dish: name is missing",
	} {
		ps := Decode(parsed(t, text), new(meal), "")
		if len(ps) != 1 || ps[0].Error() != want {
			t.Errorf("%s: %v, want %s", text, ps, want)
		}
	}
	root, value := parsed(t, "{dish: soup}"), parsed(t, "3")
	if err := Set(root, meal{}, "drink.age", Pos{}, value); err != nil || root.Get("dish") != nil || root.Has("drink.name") {
		t.Errorf("what excludes a key that is set stays: %v, %v", root.Value(), err)
	}
}
