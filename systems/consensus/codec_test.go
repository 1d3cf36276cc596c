package consensus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/testing/protocmp"
)

var messages = []message{
	{to: 2, raft: &raftpb.Message{Type: raftpb.MsgApp.Enum(), To: new(uint64(2)), From: new(uint64(1)), Entries: []*raftpb.Entry{{Index: new(uint64(7)), Data: []byte("x")}}}},
	{to: 2, forward: &forward{term: 3, epoch: 1 << 63, low: 5, items: []item{{5, 1, false, []byte("data")}, {6, 0, true, []byte{}}}}},
	{to: 2, refusal: &refusal{term: 3, epoch: 9, items: []refused{{5, 1, "why"}, {6, 0, ""}}}},
	{to: 2, transfer: 4},
	{to: 2, note: frameSubscribe},
	{to: 2, ping: &ping{sent: 1, applied: 2, dropped: 3, election: 4, term: 5}},
	{to: 2, pong: 6},
}

func TestCodec(t *testing.T) {
	for _, m := range messages {
		b, err := encodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeMessage(2, b)
		if diff := cmp.Diff(m, got, cmp.AllowUnexported(message{}, forward{}, item{}, refusal{}, refused{}, ping{}), protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// FuzzDecode decodes arbitrary frames: each one is rejected or survives a round trip through the encoder.
func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		b, err := encodeMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMessage(2, b)
		if err != nil {
			return
		}
		again, err := encodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeMessage(2, again)
		if diff := cmp.Diff(m, got, cmp.AllowUnexported(message{}, forward{}, item{}, refusal{}, refused{}, ping{}), protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
}
