package hydra

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load"
)

func TestRecord(t *testing.T) {
	fields := []load.Field{
		{Name: "plain", Value: []byte("abc")}, {Name: "empty", Value: []byte{}}, {Name: "quo\"te", Value: []byte("a\"b\\c\n\x00")},
		{Name: "bytes", Value: []byte{0xff, 0, 0xfe}}, {Name: "coded", Value: []byte("base64:x")}, {Name: "text", Value: []byte("\u00e9\u2028")},
	}
	value := appendRecord(nil, fields)
	if !json.Valid(value) {
		t.Fatalf("%s is not JSON", value)
	}
	var d decoder
	got, err := d.fields(nil, value, nil)
	if diff := cmp.Diff(fields, got, cmp.Comparer(bytes.Equal)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := d.fields(nil, value, []string{"bytes"}); err != nil || len(got) != 1 || !bytes.Equal(got[0].Value, fields[3].Value) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"a":"b","c":"base64:eA=="}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		var d decoder
		fields, err := d.fields(nil, value, nil)
		if err != nil {
			return
		}
		if again, err := d.fields(nil, appendRecord(nil, fields), nil); err != nil || len(again) != len(fields) {
			t.Errorf("%q: %v", value, err)
		}
	})
}
