package strict

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/unit"
)

type shop struct {
	Name   string            `yaml:"name" jsonschema:"required,pattern=^[a-z]+$"`
	Owner  person            `yaml:"owner"`
	Staff  []person          `yaml:"staff" jsonschema:"maxItems=2"`
	Open   bool              `yaml:"open" jsonschema:"default=true"`
	Floors int               `yaml:"floors" jsonschema:"default=1,minimum=1,maximum=9"`
	Rent   float64           `yaml:"rent" jsonschema:"exclusiveMinimum=0"`
	Kind   string            `yaml:"kind" jsonschema:"enum=bakery,enum=butcher"`
	Lunch  unit.Duration     `yaml:"lunch" jsonschema:"default=30m"`
	Seed   uint64            `yaml:"seed"`
	Labels map[string]string `yaml:"labels"`
	Extra  map[string]any    `yaml:"extra"`
	Cat    *person           `yaml:"cat"`
	hours  `yaml:",inline"`
}

type hours struct {
	From *unit.Duration `yaml:"from"`
	Till *unit.Duration `yaml:"till" jsonschema:"default=8h"`
}

type person struct {
	Name string `yaml:"name" jsonschema:"required"`
	Nick string `yaml:"nick"`
	Age  int    `yaml:"age" jsonschema:"default=40"`
}

func (person) Shorthand() string        { return "name" }
func (person) Alternatives() [][]string { return [][]string{{"name", "nick"}} }

func TestDecode(t *testing.T) {
	root, err := Parse("shop.yaml", []byte(`
name: corner
owner: Ada            # shorthand
staff: [Bob:2, {name: Cy, age: 30}]
rent: 1e3
floors: 2e0
kind: bakery
seed: 18446744073709551615
labels: {n: 12, 'on': yes, t: 'a: b'}
extra: {a: 1, b: 1.5, c: true, d: x:2}
cat: &cat {name: Tom}
from: 8h
`))
	if err != nil {
		t.Fatal(err)
	}
	var got shop
	if ps := Decode(root, &got, ""); len(ps) > 0 {
		t.Fatal(ps)
	}
	from := unit.Duration(8 * time.Hour)
	want := shop{
		Name: "corner", Owner: person{Name: "Ada", Age: 40}, Staff: []person{{Name: "Bob:2", Age: 40}, {Name: "Cy", Age: 30}},
		Open: true, Floors: 2, Rent: 1000, Kind: "bakery", Lunch: unit.Duration(30 * time.Minute), Seed: 1<<64 - 1,
		Labels: map[string]string{"n": "12", "on": "yes", "t": "a: b"}, Extra: map[string]any{"a": int64(1), "b": 1.5, "c": true, "d": "x:2"},
		Cat: &person{Name: "Tom", Age: 40}, hours: hours{From: &from},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(shop{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // problems as printed, without the excerpt
	}{
		{"valid", "name: a", nil},
		{"empty", "# nothing\n", []string{"f:1:1: the document is empty"}},
		{"no YAML", "name: [a", []string{"f:1:7: invalid YAML: sequence end token ']' not found"}},
		{"two documents", "name: a\n---\nname: b", []string{"f:3:1: a second document begins here; only one is allowed"}},
		{"key twice", "name: a\nname: b", []string{`f:2:1: duplicate key "name" (first in line 1)`}},
		{"unknown alias", "name: *x", []string{"f:1:7: no anchor &x before this alias"}},
		{"not a mapping", "[a]", []string{"f:1:1: want a mapping, not a list; known keys are name, owner, staff, open, floors, rent, kind, lunch, seed, labels, extra, cat, from, till"}},
		{"missing", "rent: 1", []string{"f:1:1: name is missing"}},
		{"misspelt key", "name: a\nstaf: []", []string{`f:2:1: unknown key "staf"; did you mean "staff"?`}},
		{"strange key", "name: a\nowner: {name: x, zzz: 1}", []string{`f:2:18: owner: unknown key "zzz"; known are name, nick, age`}},
		{"pattern", "name: A b", []string{`f:1:7: name: "A b" does not match ^[a-z]+$`}},
		{"enum", "name: a\nkind: bakry", []string{`f:2:7: kind: "bakry" is not one of bakery, butcher; did you mean "bakery"?`}},
		{"minimum", "name: a\nfloors: 0", []string{"f:2:9: floors: 0 is too small, the minimum is 1"}},
		{"maximum", "name: a\nfloors: 10", []string{"f:2:9: floors: 10 is too large, the maximum is 9"}},
		{"above", "name: a\nrent: 0", []string{"f:2:7: rent: 0 is too small, it must be above 0"}},
		{"too many", "name: a\nstaff: [x, y, z]", []string{"f:2:8: staff: 3 entries is too large, the maximum is 2"}},
		{"text for number", "name: a\nfloors: '2'", []string{`f:2:9: floors: want a whole number, not "2"; write 2`}},
		{"thousands", "name: a\nfloors: 1,000", []string{`f:2:9: floors: want a whole number, not "1,000"; write 1000`}},
		{"fraction for whole", "name: a\nfloors: 1.5", []string{`f:2:9: floors: want a whole number, not "1.5"`}},
		{"percent for number", "name: a\nrent: 20%", []string{`f:2:7: rent: want a number, not "20%"; write 0.2`}},
		{"infinite", "name: a\nrent: .inf", []string{`f:2:7: rent: want a number, not ".inf"`}},
		{"yes for true", "name: a\nopen: yes", []string{`f:2:7: open: want true or false, not "yes"; write true`}},
		{"scalar for list", "name: a\nstaff: Bob", []string{`f:2:8: staff: want a list, not "Bob"; write [Bob]`}},
		{"list for scalar", "name: [a]", []string{"f:1:7: name: want text, not a list"}},
		{"negative seed", "name: a\nseed: -1", []string{`f:2:7: seed: want a whole number from 0 on, not "-1"`}},
		{"no unit", "name: a\nlunch: 5", []string{`f:2:8: lunch: wrong unit: "5" has no unit (write 5ms or 5s)`}},
		{"nothing given", "name:\nrent: 1", []string{"f:1:6: name: value is missing, want text"}},
		{"empty mapping is left out", "name: a\nowner:\nstaff:\n", nil},
		{"within a list", "name: a\nstaff:\n  - name: x\n  - {name: y, agee: 3}", []string{`f:4:15: staff[1]: unknown key "agee"; did you mean "age"?`}},
		{"alternatives", "name: a\ncat: {name: x, nick: y}", []string{"f:2:16: cat: name and nick exclude each other; keep one of them"}},
		{"several", "nam: a\nrent: x\nkind: b", []string{`f:1:1: unknown key "nam"; did you mean "name"?`, "f:1:1: name is missing", `f:2:7: rent: want a number, not "x"`, `f:3:7: kind: "b" is not one of bakery, butcher`}},
		{"merge key", "cat: &c {name: x}\nname: a\nowner: {<<: *c, age: 3}", nil},
		{"merge of a scalar", "cat: &c x\nname: a\nowner: {<<: *c}", []string{"f:3:9: << merges mappings, not text"}},
		{"tag", "name: !!int 3", []string{"f:1:7: the YAML tag !!int is not supported"}},
		{"bomb", bomb(), []string{"f:7:42: the document is too large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(tt.text) {
				got = append(got, p.Error())
			}
			if tt.name == "bomb" && len(got) > 1 {
				got = got[:1]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// bomb expands to 10^20 values in 21 lines.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func problemsOf(text string) Problems {
	root, err := Parse("f", []byte(text))
	var ps Problems
	if errors.As(err, &ps) {
		return ps
	}
	return Decode(root, new(shop), "")
}

func TestExcerpt(t *testing.T) {
	got := problemsOf("name: a\n\tkind: b").Error()
	if !strings.Contains(got, "| ") || !strings.Contains(got, "^") {
		t.Errorf("no excerpt in %q", got)
	}
	want := `f:2:7: kind: "b" is not one of bakery, butcher
    1 | name: a
    2 | kind: b
      |       ^`
	if diff := cmp.Diff(want, problemsOf("name: a\nkind: b").Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	tests := []struct {
		name, doc, path, value string
		want                   any // the document afterwards, or the problem
	}{
		{"replace", "{rent: 1}", "rent", "2", map[string]any{"rent": int64(2)}},
		{"add", "{}", "owner.name", "Ada", map[string]any{"owner": map[string]any{"name": "Ada"}}},
		{"next to a shorthand", "{owner: Ada}", "owner.age", "3", map[string]any{"owner": map[string]any{"name": "Ada", "age": int64(3)}}},
		{"a shorthand into a mapping", "{owner: {name: Ada, age: 3}}", "owner", "Bob", map[string]any{"owner": map[string]any{"name": "Bob", "age": int64(3)}}},
		{"merge", "{owner: {name: Ada, age: 3}}", "owner", "{age: 4}", map[string]any{"owner": map[string]any{"name": "Ada", "age": int64(4)}}},
		{"alternative removed", "{cat: {nick: x, age: 3}}", "cat.name", "y", map[string]any{"cat": map[string]any{"name": "y", "age": int64(3)}}},
		{"alternative removed by a shorthand", "{cat: {nick: x}}", "cat", "y", map[string]any{"cat": map[string]any{"name": "y"}}},
		{"key of a map with a dot", "{}", "labels.a.b", "c", map[string]any{"labels": map[string]any{"a.b": "c"}}},
		{"inline", "{}", "from", "1h", map[string]any{"from": "1h"}},
		{"list as a whole", "{staff: [a]}", "staff", "[b, c]", map[string]any{"staff": []any{"b", "c"}}},
		{"an item of a list", "{staff: [{name: a}, {name: b, age: 2}]}", "staff[1].age", "3", map[string]any{"staff": []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "age": int64(3)}}}},
		{"a whole item", "{staff: [{name: a}, {name: b}]}", "staff[0]", "{name: c}", map[string]any{"staff": []any{map[string]any{"name": "c"}, map[string]any{"name": "b"}}}},
		{"no such item", "{staff: [{name: a}]}", "staff[1].age", "3", "flag: staff has 1 items and no [1]; the first item is [0]"},
		{"no index", "{staff: [{name: a}]}", "staff[x].age", "3", "flag: staff[x] is not an item of a list; write [0] for the first item"},
		{"an item of a mapping", "{owner: {name: a}}", "owner[0].age", "3", "flag: owner has no items; set the whole value"},
		{"unknown", "{}", "ownr.name", "x", `flag: unknown key "ownr"; did you mean "owner"?`},
		{"unknown below", "{}", "owner.nmae", "x", `flag: owner: unknown key "nmae"; did you mean "name"?`},
		{"below a scalar", "{rent: 1}", "rent.x", "x", `flag: rent is a number and has no key "x"`},
		{"no path", "{}", "", "x", "flag: the path is empty; write KEY=VALUE, such as scale=0.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, err := Parse("f", []byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			value, err := ParseValue("flag", tt.value)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := Set(root, shop{}, tt.path, value.Pos, value); err != nil {
				got = err.Error()
			} else {
				got = root.Value()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Decoding any text ends without a panic, and every problem has a position.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name: a", "owner: {name: x}\nstaff: [a, {b: c}]", "a: &x [*x]", "? {a: b}\n: c", "<<: {a: b}", "name: |\n  x\n", "- - -", "{", "\t", "a: !!str 1", "%YAML 1.2\n---\na: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range problemsOf(text) {
			if p.Pos.Line < 1 || p.Pos.Column < 0 || p.Message == "" {
				t.Errorf("%q: problem %+v has no position", text, p)
			}
			p.Excerpt()
		}
	})
}

// tuned accepts unknown keys.
type tuned struct {
	Kind   string                    `yaml:"kind"`
	Others map[string]map[string]any `yaml:",rest"`
}

func (tuned) Shorthand() string { return "kind" }

func TestOtherKeys(t *testing.T) {
	type car struct {
		Radio tuned `yaml:"radio"`
	}
	for text, want := range map[string]tuned{
		"radio: fm": {Kind: "fm"},
		"radio: {kind: fm, fm: {low: 88, name: x}}": {Kind: "fm", Others: map[string]map[string]any{"fm": {"low": int64(88), "name": "x"}}},
		"radio: {am: }": {},
	} {
		root, err := Parse("car.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got car
		if ps := Decode(root, &got, ""); len(ps) > 0 {
			t.Errorf("%s: %v", text, ps)
		}
		if len(got.Radio.Others) == 0 {
			got.Radio.Others = nil
		}
		if diff := cmp.Diff(want, got.Radio); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	root, err := Parse("car.yaml", []byte("radio: {kind: fm, fm: 5}"))
	if err != nil {
		t.Fatal(err)
	}
	if ps := Decode(root, new(car), ""); len(ps) != 1 || ps[0].Pos.Column == 0 || ps[0].Path != "radio.fm" {
		t.Errorf("a value instead of a mapping: %v", ps)
	}
	root, err = Parse("car.yaml", []byte("radio: fm"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := ParseValue("--set", "90")
	if err != nil {
		t.Fatal(err)
	}
	if err := Set(root, car{}, "radio.fm.low", Pos{}, value); err != nil {
		t.Fatal(err)
	}
	var got car
	if ps := Decode(root, &got, ""); len(ps) > 0 || got.Radio.Kind != "fm" || got.Radio.Others["fm"]["low"] != int64(90) {
		t.Errorf("set: %+v, %v", got, ps)
	}
}

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

func (course) Choices() []ChoiceKey {
	return []ChoiceKey{{"drink", reflect.TypeFor[person]()}, {"dish", reflect.TypeFor[dish]()}}
}

func (c *course) Choose(key string, value reflect.Value) { *c = course{key, value.Interface()} }

func TestChooser(t *testing.T) {
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

func TestChooserProblems(t *testing.T) {
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
		t.Errorf("an excluded alternative was not removed: %v, %v", root.Value(), err)
	}
}
