package wire_test

import (
	"testing"
	"time"

	"skerry/internal/hydra/wire"
)

// Members of former versions send these bytes.
func TestBytes(t *testing.T) {
	for want, got := range map[string][]byte{
		"\v\x00\x00\x00\xac\x02\x01\xdc\v\x02\x14\x01a\x01k":    wire.AppendRequest(nil, &wire.Request{ID: 300, Operation: wire.Get, Timeout: 1500 * time.Millisecond, Read: 2, Staleness: 20 * time.Millisecond, Table: []byte("a"), Key: []byte("k")}),
		"\x05\x00\x00\x00\x01\x02\x00\x01x":                     wire.AppendRequest(nil, &wire.Request{ID: 1, Operation: wire.Transact, Ack: 1, Transaction: []byte("x")}),
		"\x0e\x00\x00\x00\x01\x01\xac\x02\x02\xdd\v\x03aws\a{}": wire.AppendAnswer(nil, &wire.Answer{ID: 1, Kind: wire.Row, Version: 7, Applied: 300, Lag: 2, Age: 1500 * time.Microsecond, Cloud: []byte("aws"), Value: []byte("{}")}),
		"\a\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00":            wire.AppendAnswer(nil, &wire.Answer{ID: 1, Kind: wire.Row, Age: -time.Microsecond}),
		"\x05\x00\x00\x00\x01\x02\xac\x02\x02":                  wire.AppendAnswer(nil, &wire.Answer{ID: 1, Kind: wire.Written, Version: 300, Ack: 2}),
		"\x04\x00\x00\x00\x01\x03{}":                            wire.AppendAnswer(nil, &wire.Answer{ID: 1, Kind: wire.Problem, Problem: []byte("{}")}),
		"\x02\x00\x00\x00\x01\x04":                              wire.AppendAnswer(nil, &wire.Answer{ID: 1, Kind: wire.Elsewhere}),
	} {
		if string(got) != want {
			t.Errorf("%q is %q", want, got)
		}
	}
}
