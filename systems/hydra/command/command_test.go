package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tables is a State in memory.
type tables map[string]map[string]Row

func (t tables) HasTable(n string) bool { _, ok := t[n]; return ok }
func (t tables) Row(n, k string) Row    { return t[n][k] }
func (t tables) SetRow(n, k string, r Row) {
	if r.Value == nil {
		delete(t[n], k)
	} else {
		t[n][k] = r
	}
}
func (t tables) CreateTable(n string) {
	if t[n] == nil {
		t[n] = map[string]Row{}
	}
}
func (t tables) ClearTable(n string) { clear(t[n]) }
func (t tables) DropTable(n string)  { delete(t, n) }

func TestEvaluate(t *testing.T) {
	for _, c := range []struct {
		name, transaction string
		want              string
		row               string // expected row accounts/ada afterwards, "" for none
	}{
		{"put", `{"writes":[{"do":"put","table":"accounts","key":"ada","value":{ "balance" : 7 }}]}`, OK, `{"balance":7}`},
		{"merge keeps others", `{"writes":[{"do":"merge","table":"accounts","key":"ada","value":{"name":"Ada"}}]}`, OK,
			`{"balance":10,"name":"Ada"}`},
		{"merge removes", `{"writes":[{"do":"merge","table":"accounts","key":"ada","value":{"balance":null,"x":null}}]}`, OK, `{}`},
		{"merge of a name spelt otherwise",
			`{"writes":[{"do":"merge","table":"accounts","key":"ada","value":{"b\u0061lance":1}}]}`,
			OK, `{"balance":1}`},
		{"the last of equal names", `{"writes":[{"do":"put","table":"accounts","key":"ada","value":{"a":1,"a":{"b":[2,"}"]}}}]}`,
			OK, `{"a":{"b":[2,"}"]}}`},
		{"add", `{"writes":[{"do":"add","table":"accounts","key":"ada","value":{"balance":-3,"n":1}}]}`, OK, `{"balance":7,"n":1}`},
		{"add twice",
			`{"writes":[{"do":"add","table":"accounts","key":"ada","value":{"balance":1}},` +
				`{"do":"add","table":"accounts","key":"ada","value":{"balance":1}}]}`,
			OK, `{"balance":12}`},
		{"add overflows", `{"writes":[{"do":"add","table":"accounts","key":"ada","value":{"balance":9223372036854775807}}]}`,
			BadField, `{"balance":10}`},
		{"all or nothing",
			`{"writes":[{"do":"delete","table":"accounts","key":"ada"},{"do":"add","table":"accounts","key":"text","value":{"balance":1}}]}`,
			BadField, `{"balance":10}`},
		{"add after delete",
			`{"writes":[{"do":"delete","table":"accounts","key":"ada"},{"do":"add","table":"accounts","key":"ada","value":{"balance":1}}]}`,
			OK, `{"balance":1}`},
		{"add after clear",
			`{"writes":[{"do":"clear_table","table":"accounts"},{"do":"add","table":"accounts","key":"text","value":{"balance":1}}]}`,
			OK, ``},
		{"delete", `{"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`, OK, ``},
		{"unknown table", `{"writes":[{"do":"delete","table":"nothing","key":"ada"}]}`, UnknownTable, `{"balance":10}`},
		{"create and use", `{"writes":[{"do":"create_table","table":"new"},{"do":"put","table":"new","key":"a","value":{}}]}`, OK,
			`{"balance":10}`},
		{"drop and use",
			`{"writes":[{"do":"drop_table","table":"accounts"},{"do":"put","table":"accounts","key":"a","value":{}}]}`,
			UnknownTable, `{"balance":10}`},
		{"exists",
			`{"checks":[{"table":"accounts","key":"bob","is":"exists"}],"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			CheckFailed, `{"balance":10}`},
		{"absent",
			`{"checks":[{"table":"accounts","key":"bob","is":"absent"}],"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			OK, ``},
		{"version",
			`{"checks":[{"table":"accounts","key":"ada","is":"version","version":3}],"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			OK, ``},
		{"other version",
			`{"checks":[{"table":"accounts","key":"ada","is":"version","version":2}],"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			CheckFailed, `{"balance":10}`},
		{"ge",
			`{"checks":[{"table":"accounts","key":"ada","is":"ge","field":"balance","value":10}],` +
				`"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			OK, ``},
		{"gt",
			`{"checks":[{"table":"accounts","key":"ada","is":"gt","field":"balance","value":1e1}],` +
				`"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			CheckFailed, `{"balance":10}`},
		{"a string is not less than a number",
			`{"checks":[{"table":"accounts","key":"text","is":"lt","field":"balance","value":10}],` +
				`"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			CheckFailed, `{"balance":10}`},
		{"no field is equal to nothing",
			`{"checks":[{"table":"accounts","key":"ada","is":"eq","field":"none","value":null}],` +
				`"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			CheckFailed, `{"balance":10}`},
		{"ne of no field",
			`{"checks":[{"table":"accounts","key":"ada","is":"ne","field":"none","value":1}],` +
				`"writes":[{"do":"delete","table":"accounts","key":"ada"}]}`,
			OK, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tables{"accounts": {"ada": {3, []byte(`{"balance":10}`)}, "text": {4, []byte(`{"balance":"ten"}`)}}}
			var given Transaction
			if err := json.Unmarshal([]byte(c.transaction), &given); err != nil {
				t.Fatal(err)
			}
			if err := given.Normalize(); err != nil {
				t.Fatal(err)
			}
			decoded, err := Decode(given.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(given, decoded, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("encoded and decoded: %s", d)
			}
			if got := Evaluate(&decoded, 9, s); got.Code != c.want {
				t.Errorf("outcome %+v, want %s", got, c.want)
			}
			if got := string(s.Row("accounts", "ada").Value); got != c.row {
				t.Errorf("row %s, want %s", got, c.row)
			}
		})
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for name, c := range map[string]Transaction{
		"nothing":         {},
		"SQL as a table":  {Writes: []Write{{Do: Delete, Table: `a"; drop table b; --`, Key: "k"}}},
		"reserved table":  {Writes: []Write{{Do: CreateTable, Table: "hydra_meta"}}},
		"empty key":       {Writes: []Write{{Do: Delete, Table: "a"}}},
		"NUL in a key":    {Writes: []Write{{Do: Delete, Table: "a", Key: "k\x00"}}},
		"long key":        {Writes: []Write{{Do: Delete, Table: "a", Key: strings.Repeat("k", MaxKey+1)}}},
		"no object":       {Writes: []Write{{Do: Put, Table: "a", Key: "k", Value: []byte("[1]")}}},
		"no JSON":         {Writes: []Write{{Do: Put, Table: "a", Key: "k", Value: []byte(`{"a":}`)}}},
		"no UTF-8":        {Writes: []Write{{Do: Put, Table: "a", Key: "k", Value: []byte("{\"a\":\"\xff\"}")}}},
		"fraction to add": {Writes: []Write{{Do: Add, Table: "a", Key: "k", Value: []byte(`{"a":1.5}`)}}},
		"unknown write":   {Writes: []Write{{Do: "upsert", Table: "a", Key: "k"}}},
		"unknown check":   {Checks: []Check{{Table: "a", Key: "k", Is: "near"}}, Writes: []Write{{Do: Delete, Table: "a", Key: "k"}}},
		"array to check": {Checks: []Check{{Table: "a", Key: "k", Is: Equal, Field: "f", Value: []byte("[]")}},
			Writes: []Write{{Do: Delete, Table: "a", Key: "k"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Normalize(); err == nil {
				t.Error("the transaction was accepted")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	t := Transaction{RequestID: "r", Checks: []Check{{Table: "a", Key: "k", Is: Equal, Field: "f", Value: []byte("1")}},
		Writes: []Write{{Do: Put, Table: "a", Key: "k", Value: []byte("{}")}}}
	f.Add(t.Append(nil))
	f.Add([]byte{format, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(d.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1,"}"]}}`), []byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, row, change []byte) {
		a, err := normalizeObject(row)
		if err != nil {
			return
		}
		b, err := normalizeObject(change)
		if err != nil {
			return
		}
		if merged := mergeObjects(a, b); !json.Valid(merged) {
			t.Errorf("%s and %s became %s", a, b, merged)
		}
	})
}

// TestBytes fixes the encoding: logs of earlier versions contain these bytes.
func TestBytes(t *testing.T) {
	given := Transaction{
		RequestID: "r",
		Checks:    []Check{{Table: "a", Key: "k", Is: Version, Version: 300}, {Table: "a", Key: "k", Is: Equal, Field: "f", Value: []byte("1")}},
		Writes:    []Write{{Do: Put, Table: "a", Key: "k", Value: []byte("{}")}, {Do: ClearTable, Table: "b"}},
	}
	want := "\x01\x01r\x02\x02\x01a\x01k\xac\x02\x00\x00\x03\x01a\x01k\x00\x01f\x011\x02\x00\x01a\x01k\x02{}\x06\x01b\x00\x00"
	if got := string(given.Append(nil)); got != want {
		t.Errorf("encoded as %q, want %q", got, want)
	}
	if got, err := Decode([]byte(want)); err != nil || cmp.Diff(given, got) != "" {
		t.Errorf("%v\n%s", err, cmp.Diff(given, got))
	}
}
