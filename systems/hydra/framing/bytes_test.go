package framing_test

import (
	"testing"
	"time"

	"skerry/systems/hydra/framing"
)

// Members of former versions send these bytes.
func TestBytes(t *testing.T) {
	for want, got := range map[string][]byte{
		"\v\x00\x00\x00\xac\x02\x01\xdc\v\x02\x14\x01a\x01k":    framing.AppendRequest(nil, &framing.Request{ID: 300, Operation: framing.Get, Timeout: 1500 * time.Millisecond, Read: 2, Staleness: 20 * time.Millisecond, Table: []byte("a"), Key: []byte("k")}),
		"\x05\x00\x00\x00\x01\x02\x00\x01x":                     framing.AppendRequest(nil, &framing.Request{ID: 1, Operation: framing.Transact, Ack: 1, Transaction: []byte("x")}),
		"\x0e\x00\x00\x00\x01\x01\xac\x02\x02\xdd\v\x03aws\a{}": framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Row, Version: 7, Applied: 300, Lag: 2, Age: 1500 * time.Microsecond, Cloud: []byte("aws"), Value: []byte("{}")}),
		"\a\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00":            framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Row, Age: -time.Microsecond}),
		"\x05\x00\x00\x00\x01\x02\xac\x02\x02":                  framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Written, Version: 300, Ack: 2}),
		"\x04\x00\x00\x00\x01\x03{}":                            framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Problem, Problem: []byte("{}")}),
		"\x02\x00\x00\x00\x01\x04":                              framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Elsewhere}),
	} {
		if string(got) != want {
			t.Errorf("%q is %q", want, got)
		}
	}
}
