package hbase

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/load"
)

// answer is the reply of a fake process: a body for a request, or nothing.
type answer func(id uint64, op byte, args []byte) []byte

// fake is a bridge whose process is this test.
func fake(t *testing.T, a answer) *bridge {
	t.Helper()
	requests, w := io.Pipe()
	r, replies := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		defer replies.Close()
		in := bufio.NewReader(requests)
		for {
			head := make([]byte, frameHead)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			args := make([]byte, int(binary.BigEndian.Uint32(head))+4-frameHead)
			if _, err := io.ReadFull(in, args); err != nil {
				return
			}
			if out := a(binary.BigEndian.Uint64(head[4:]), head[12], args); out != nil {
				if _, err := replies.Write(out); err != nil {
					return
				}
			}
		}
	})
	b := newBridge(r, w, func() error {
		err := errors.Join(w.Close(), r.Close())
		served.Wait()
		return err
	})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// replyTo encodes a reply.
func replyTo(id uint64, status byte, retries uint16, body ...byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(replyHead+len(body)))
	out = binary.BigEndian.AppendUint64(out, id)
	out = append(out, status)
	out = binary.BigEndian.AppendUint16(out, retries)
	return append(out, body...)
}

func newClient(b *bridge) *client {
	return &client{bridge: b, slot: b.acquireSlot(), timeout: 10 * time.Second}
}

// Many workers read at the same time, and each gets the requested key, in any order of replies.
func TestBridgeKeepsCallsApart(t *testing.T) {
	var mu sync.Mutex
	held := make(map[uint64][]byte)
	b := fake(t, func(id uint64, _ byte, args []byte) []byte {
		d := decoder{b: args}
		d.name()
		key := d.name()
		body := binary.BigEndian.AppendUint16(nil, 1)
		body = appendValue(appendName(body, "field0"), key)
		mu.Lock()
		defer mu.Unlock()
		held[id] = replyTo(id, statusOK, 1, body...)
		if len(held) < 4 {
			return nil
		}
		var out []byte
		for id, r := range held { // in any order
			out = append(out, r...)
			delete(held, id)
		}
		return out
	})
	var workers sync.WaitGroup
	for n := range 4 {
		c := newClient(b)
		workers.Go(func() {
			for i := range 200 {
				key := fmt.Sprintf("user%d-%d", n, i)
				got, err := c.Read(t.Context(), "t", key, nil, nil)
				if err != nil || len(got) != 1 || string(got[0].Value) != key {
					t.Errorf("read of %s: %v, %v", key, got, err)
				}
			}
			if c.Retries() != 200 {
				t.Errorf("%d retries, want 200", c.Retries())
			}
		})
	}
	workers.Wait()
}

func TestOutcomes(t *testing.T) {
	failure := func(class, server, message string) []byte {
		return appendName(appendName(appendName(nil, class), server), message)
	}
	var reply []byte
	var status byte
	b := fake(t, func(id uint64, _ byte, _ []byte) []byte { return replyTo(id, status, 0, reply...) })
	c := newClient(b)
	for _, test := range []struct {
		status byte
		body   []byte
		want   error // compared by outcome and class
	}{
		{status: statusOK},
		{status: statusMissing, want: load.ErrNotFound},
		{status: statusFailed, body: failure("not_serving", "10.0.0.1", "moved"), want: load.Failed("not_serving", "10.0.0.1", errors.New("moved"))},
		{status: statusUnknown, body: failure("reset", "", "gone"), want: load.Unknown("reset", "", errors.New("gone"))},
		{status: statusFailed, body: []byte{0, 9}, want: errProtocol},
	} {
		status, reply = test.status, test.body
		err := c.Update(t.Context(), "t", "k", nil)
		var got, want *load.OpError
		if errors.As(test.want, &want) {
			if !errors.As(err, &got) || got.Outcome != want.Outcome || got.Class != want.Class || got.Node != want.Node || got.Err.Error() != want.Err.Error() {
				t.Errorf("status %d: %v, want %v", test.status, err, test.want)
			}
		} else if !errors.Is(err, test.want) {
			t.Errorf("status %d: %v, want %v", test.status, err, test.want)
		}
	}
}

// The late reply of an operation that timed out belongs to no call.
func TestLateReply(t *testing.T) {
	ctx, expire := context.WithCancelCause(t.Context())
	var late []byte
	b := fake(t, func(id uint64, _ byte, _ []byte) []byte {
		if late == nil {
			late = replyTo(id, statusMissing, 0)
			expire(context.DeadlineExceeded)
			return nil
		}
		return append(late, replyTo(id, statusOK, 0)...)
	})
	c := newClient(b)
	var e *load.OpError
	if err := c.Update(ctx, "t", "k", nil); !errors.As(err, &e) || e.Outcome != load.InDoubt || e.Class != "timeout" {
		t.Errorf("an update without a reply: %v", err)
	}
	if err := c.Update(ctx, "t", "k", nil); !errors.As(err, &e) || e.Outcome != load.NotDone {
		t.Errorf("an update whose deadline had passed before it started: %v", err)
	}
	if err := c.Update(t.Context(), "t", "k", nil); err != nil {
		t.Errorf("the next update: %v", err)
	}
}

func TestBridgeEnds(t *testing.T) {
	for name, out := range map[string][]byte{
		"too short": {0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8}, "too long": {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"to nobody": replyTo(77<<32, statusOK, 0),
	} {
		c := newClient(fake(t, func(uint64, byte, []byte) []byte { return out }))
		var e *load.OpError
		if err := c.Delete(t.Context(), "t", "k"); !errors.As(err, &e) || e.Outcome != load.InDoubt || !errors.Is(err, errProtocol) {
			t.Errorf("a reply %s: %v", name, err)
		}
		if err := c.Delete(t.Context(), "t", "k"); !errors.Is(err, errBridge) {
			t.Errorf("after a reply %s: %v", name, err)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	body := binary.BigEndian.AppendUint16(nil, 2)
	body = appendValue(appendName(body, "field0"), "value")
	body = appendValue(appendName(body, "field1"), "")
	f.Add(body)
	f.Add([]byte{0xff, 0xff, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		d := decoder{b: body}
		fields := d.record(nil, new(database.FieldNames))
		size := 0
		for _, x := range fields {
			size += 2 + len(x.Name) + 4 + len(x.Value)
		}
		if size > len(body) {
			t.Fatalf("%d bytes of fields were read from %d", size, len(body))
		}
		if d.err == nil && len(body) >= 2 && size+2+len(d.b) != len(body) {
			t.Fatalf("%d + 2 of %d bytes were read, %d are left", size, len(body), len(d.b))
		}
		l := decoder{b: body}
		_, _ = l.lines()
		_ = reply{status: statusFailed, body: body}.err()
	})
}

func TestBridgeHereEnds(t *testing.T) {
	sh := filepath.Join(t.TempDir(), "java")
	if err := os.WriteFile(sh, []byte("#!/bin/sh\necho no such class >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := startLocalBridge(command{java: sh})
	if err != nil {
		t.Fatal(err)
	}
	<-b.done
	if diff := cmp.Diff(true, errors.Is(b.err, errBridge) && errors.Is(b.err, io.EOF)); diff != "" {
		t.Errorf("%v: %s", b.err, diff)
	}
	if err := b.Close(); err == nil {
		t.Error("a failed process returned no error")
	}
}
