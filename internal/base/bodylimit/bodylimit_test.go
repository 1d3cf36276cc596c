package bodylimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, initialBuffer - 1, initialBuffer, initialBuffer + 1, freeBytes, freeBytes + 1, 3 * freeBytes, 1 << 20} {
		text := bytes.Repeat([]byte{'x'}, n)
		for name, from := range map[string]io.Reader{"all at once": bytes.NewReader(text), "in two halves": iotest.HalfReader(bytes.NewReader(text)), "with the end": iotest.DataErrReader(bytes.NewReader(text))} {
			for _, length := range []int64{int64(n), -1} {
				if length < 0 {
					from = bytes.NewReader(text)
				}
				r := NewBudget(0)
				b, held, err := r.Read(from, length)
				if err != nil || !bytes.Equal(b, text) {
					t.Fatalf("%d bytes %s, announced %d: %d, %v", n, name, length, len(b), err)
				}
				if held != r.InUse() || held > 2*int64(n) || n > freeBytes && held < int64(n)-freeBytes {
					t.Errorf("%d bytes reserve %d, but the budget reports %d", n, held, r.InUse())
				}
				r.Release(held)
				if r.InUse() != 0 {
					t.Errorf("%d bytes are left", r.InUse())
				}
			}
		}
	}
	r := NewBudget(0)
	if _, held, err := r.Read(strings.NewReader(strings.Repeat("x", 100_000)), 200_000); !errors.Is(err, ErrCut) || held != 0 || r.InUse() != 0 {
		t.Errorf("a truncated request: %v, %d held", err, r.InUse())
	}
	if _, held, err := r.Read(io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), iotest.ErrReader(io.ErrClosedPipe)), -1); !errors.Is(err, io.ErrClosedPipe) || held != 0 || r.InUse() != 0 {
		t.Errorf("a broken connection: %v, %d held", err, r.InUse())
	}
}

// With more incoming bytes than the budget, excess requests are rejected, small requests are not, and none are when the
// budget is free again.
func TestBudget(t *testing.T) {
	r := NewBudget(1 << 20)
	large := strings.Repeat("x", 700_000)
	_, held, err := r.Read(strings.NewReader(large), int64(len(large)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Read(strings.NewReader(large), -1); !errors.Is(err, ErrFull) {
		t.Errorf("a request beyond the budget: %v", err)
	}
	if _, n, err := r.Read(strings.NewReader(large[:freeBytes]), freeBytes); err != nil || n != 0 {
		t.Errorf("a small request: %v, %d held", err, n)
	}
	r.Release(held)
	if _, _, err := r.Read(strings.NewReader(large), -1); err != nil {
		t.Error(err)
	}
}

// Requests that stall or announce more than they send hold only the received bytes, and end.
func TestBody(t *testing.T) {
	room, came := NewBudget(0), make(chan error, 10)
	var patience time.Duration
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, held, err := room.ReadBody(w, r, 4<<20, patience)
		room.Release(held)
		came <- err
		fmt.Fprint(w, len(b))
	}))
	defer server.Close()
	send := func(text string) net.Conn {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var large *http.MaxBytesError
	for name, c := range map[string]struct {
		text     string
		patience time.Duration
		is       func(error) bool
	}{
		"whole":     {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 3\r\n\r\nabc", time.Minute, func(err error) bool { return err == nil }},
		"none":      {"GET / HTTP/1.1\r\nHost: m\r\n\r\n", time.Minute, func(err error) bool { return err == nil }},
		"stalled":   {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 4000000\r\n\r\nabc", 10 * time.Millisecond, func(err error) bool { return errors.Is(err, ErrSlow) }},
		"too large": {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 5000000\r\n\r\nabc", time.Minute, func(err error) bool { return errors.As(err, &large) }},
	} {
		patience = c.patience
		conn := send(c.text)
		if err := <-came; !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
	if room.InUse() != 0 {
		t.Errorf("%d bytes are held", room.InUse())
	}
}
