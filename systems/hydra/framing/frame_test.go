package framing_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/base/bodylimit"
	"skerry/systems/hydra/framing"
)

var requests = []framing.Request{
	{ID: 1, Operation: framing.Get, Timeout: 1500 * time.Millisecond, Read: 2, Staleness: 20 * time.Millisecond,
		Table: []byte("accounts"), Key: []byte("ada")},
	{ID: 1 << 60, Operation: framing.Get, Table: []byte("t"), Key: bytes.Repeat([]byte("k"), 512)},
	{ID: 3, Operation: framing.Transact, Ack: 1, Transaction: bytes.Repeat([]byte("x"), 100_000)},
	{ID: 4, Operation: framing.Transact},
}

var answers = []framing.Answer{
	{ID: 1, Kind: framing.Row, Version: 7, Applied: 9, Lag: 2, Age: 1500 * time.Microsecond, Cloud: []byte("aws"), Value: []byte(`{"a":1}`)},
	{ID: 2, Kind: framing.Row, Version: 7, Age: -time.Microsecond, Cloud: []byte("aws"), Value: []byte(`{}`)},
	{ID: 3, Kind: framing.Written, Version: 1 << 40, Ack: 2},
	{ID: 4, Kind: framing.Problem, Problem: []byte(`{"code":"not_found"}`)},
	{ID: 5, Kind: framing.Elsewhere},
}

// TestFrames checks that frames survive a connection that splits them arbitrarily.
func TestFrames(t *testing.T) {
	var sent []byte
	for i := range requests {
		sent = framing.AppendRequest(sent, &requests[i])
	}
	for i := range answers {
		sent = framing.AppendAnswer(sent, &answers[i])
	}
	for name, from := range map[string]io.Reader{"whole": bytes.NewReader(sent),
		"bytes": iotest.OneByteReader(bytes.NewReader(sent)), "halves": iotest.HalfReader(bytes.NewReader(sent))} {
		r := framing.NewReader(from)
		next := func() []byte {
			b, err := r.Next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return b
		}
		for _, want := range requests {
			got, err := framing.DecodeRequest(next())
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%s: %v\n%s", name, err, d)
			}
		}
		for _, want := range answers {
			got, err := framing.DecodeAnswer(next())
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%s: %v\n%s", name, err, d)
			}
		}
		if _, err := r.Next(); err != io.EOF || r.HasFrame() {
			t.Errorf("%s: after the last frame: %v", name, err)
		}
	}
}

// TestLong reads more long frames than fit into the memory limit: each one is released, or the reader trusts its peer.
func TestLong(t *testing.T) {
	var sent []byte
	long := framing.Request{Operation: framing.Transact, Transaction: bytes.Repeat([]byte{'x'}, 1<<20)}
	for range 20 {
		sent = framing.AppendRequest(sent, &long)
	}
	room := bodylimit.NewBudget(2 << 20)
	for name, r := range map[string]*framing.Reader{
		"a client": framing.NewReader(bytes.NewReader(sent)),
		"a server": framing.NewReader(bytes.NewReader(sent)).SetLimits(room, time.Minute, func(time.Time) error { return nil }),
	} {
		for i := range 20 {
			if _, err := r.Next(); err != nil {
				t.Fatalf("%s, frame %d: %v", name, i, err)
			}
			held, long := r.Long()
			if !long {
				t.Errorf("%s: the caller does not own a frame of 1 MiB", name)
			}
			room.Release(held)
		}
	}
	if room.InUse() != 0 {
		t.Errorf("%d bytes are still reserved", room.InUse())
	}
	r := framing.NewReader(bytes.NewReader(sent)).SetLimits(room, time.Minute, func(time.Time) error { return nil })
	var err error
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, bodylimit.ErrFull) {
		t.Errorf("frames that are not released: %v", err)
	}
}

func TestMore(t *testing.T) {
	two := framing.AppendRequest(framing.AppendRequest(nil, &requests[0]), &requests[0])
	r := framing.NewReader(bytes.NewReader(two[:len(two)-1]))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if r.HasFrame() {
		t.Error("an incomplete frame is reported as available")
	}
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a truncated frame: %v", err)
	}
}

func TestTooLong(t *testing.T) {
	if _, err := framing.NewReader(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0x7f, 1})).Next(); !errors.Is(err, framing.ErrFrame) {
		t.Errorf("a frame of 2 GiB: %v", err)
	}
}

// FuzzDecode checks that invalid frames are rejected and valid frames are unchanged when encoded again.
func FuzzDecode(f *testing.F) {
	for i := range requests {
		f.Add(framing.AppendRequest(nil, &requests[i])[4:])
	}
	for i := range answers {
		f.Add(framing.AppendAnswer(nil, &answers[i])[4:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := framing.DecodeRequest(b); err == nil {
			again, err := framing.DecodeRequest(framing.AppendRequest(nil, &q)[4:])
			if d := cmp.Diff(q, again, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		}
		if a, err := framing.DecodeAnswer(b); err == nil {
			again, err := framing.DecodeAnswer(framing.AppendAnswer(nil, &a)[4:])
			if d := cmp.Diff(a, again, cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		}
	})
}

// TestOutbox checks that each frame from many goroutines arrives complete and exactly once.
func TestOutbox(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	o := framing.NewOutbox(here)
	const senders, each = 16, 200
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() {
			for j := range each {
				if err := o.SendRequest(&framing.Request{ID: uint64(i*each + j), Operation: framing.Transact,
					Transaction: make([]byte, j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := make(map[uint64]bool)
	r := framing.NewReader(there)
	for range senders * each {
		b, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		q, err := framing.DecodeRequest(b)
		if err != nil || seen[q.ID] || len(q.Transaction) != int(q.ID%each) {
			t.Fatalf("%d: %v, seen %v, %d bytes", q.ID, err, seen[q.ID], len(q.Transaction))
		}
		seen[q.ID] = true
	}
	all.Wait()
	there.Close()
	if err := o.SendRequest(&framing.Request{Operation: framing.Transact}); err == nil || errors.Is(err, framing.ErrNotSent) {
		t.Errorf("a frame on a connection that turns out to be closed: %v", err)
	}
	if err := o.SendRequest(&framing.Request{Operation: framing.Transact}); !errors.Is(err, framing.ErrNotSent) {
		t.Errorf("a frame on a connection known to be closed: %v", err)
	}
}

// TestBytes fixes the encoding: members of earlier versions send these bytes.
func TestBytes(t *testing.T) {
	for want, got := range map[string][]byte{
		"\v\x00\x00\x00\xac\x02\x01\xdc\v\x02\x14\x01a\x01k": framing.AppendRequest(nil,
			&framing.Request{ID: 300, Operation: framing.Get, Timeout: 1500 * time.Millisecond, Read: 2,
				Staleness: 20 * time.Millisecond, Table: []byte("a"), Key: []byte("k")}),
		"\x05\x00\x00\x00\x01\x02\x00\x01x": framing.AppendRequest(nil,
			&framing.Request{ID: 1, Operation: framing.Transact, Ack: 1, Transaction: []byte("x")}),
		"\x0e\x00\x00\x00\x01\x01\xac\x02\x02\xdd\v\x03aws\a{}": framing.AppendAnswer(nil,
			&framing.Answer{ID: 1, Kind: framing.Row, Version: 7, Applied: 300, Lag: 2, Age: 1500 * time.Microsecond,
				Cloud: []byte("aws"), Value: []byte("{}")}),
		"\a\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00": framing.AppendAnswer(nil,
			&framing.Answer{ID: 1, Kind: framing.Row, Age: -time.Microsecond}),
		"\x05\x00\x00\x00\x01\x02\xac\x02\x02": framing.AppendAnswer(nil,
			&framing.Answer{ID: 1, Kind: framing.Written, Version: 300, Ack: 2}),
		"\x04\x00\x00\x00\x01\x03{}": framing.AppendAnswer(nil,
			&framing.Answer{ID: 1, Kind: framing.Problem, Problem: []byte("{}")}),
		"\x02\x00\x00\x00\x01\x04": framing.AppendAnswer(nil, &framing.Answer{ID: 1, Kind: framing.Elsewhere}),
	} {
		if string(got) != want {
			t.Errorf("got %q, want %q", want, got)
		}
	}
}
