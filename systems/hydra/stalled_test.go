package hydra

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/framing"
	"skerry/systems/hydra/hydraclient"
)

// begin sends the beginning of a request, and no more.
func begin(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// stalling is a member's interface, and a client of it.
func stalling(t *testing.T, c api.Config) (*api.Server, string, *hydraclient.Client) {
	t.Helper()
	a := startMember(t, newSharedLog(), "a", "east", "", nil)
	if err := a.client.CreateTable(t.Context(), "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	c.Backend, c.Member, c.Timeout = a.Node, "a", patience
	s := api.New(c)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	addr := server.Listener.Addr().String()
	client, err := hydraclient.New(hydraclient.Config{Endpoints: []string{addr}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return s, addr, client
}

// TestStalled has requests begin that never end: they take no slot of those that are whole.
func TestStalled(t *testing.T) {
	_, addr, client := stalling(t, api.Config{InFlight: 1})
	for i := range 8 {
		begin(t, addr, fmt.Sprintf("PUT /v1/tables/t/rows/%d HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n{", i))
		begin(t, addr, "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
	}
	for i := range 20 {
		if _, err := client.Put(t.Context(), "t", fmt.Sprint(i), map[string]int{"n": i}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// TestHuge has more come at once than there is room for: that is refused, with nothing done, and
// what is small is served. What stalls is given up, and leaves its room.
func TestHuge(t *testing.T) {
	s, addr, client := stalling(t, api.Config{Bodies: 1 << 20, Patience: patience / 10})
	row := `{"text":"` + strings.Repeat("x", 700<<10) + `"}`
	stalled := begin(t, addr, fmt.Sprintf("PUT /v1/tables/t/rows/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(row), row[:len(row)-1]))
	eventually(t, "the large row takes its room", func() bool { return s.Held() > 600<<10 })
	_, err := client.Put(t.Context(), "t", "b", map[string]string{"text": strings.Repeat("x", 600<<10)})
	if !errors.Is(err, hydraclient.ErrOverloaded) {
		t.Errorf("another: %v", err)
	}
	if _, err := client.Put(t.Context(), "t", "c", map[string]int{"n": 1}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	head := "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: " + framing.Protocol + "\r\n\r\n"
	stream := begin(t, addr, head+"\x00\x00\x40\x00"+row[:100])
	if text, _ := io.ReadAll(stalled); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("what stalled was answered with %.200q", text)
	}
	if text, err := io.ReadAll(stream); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 101 ") {
		t.Errorf("a stream that stalled in a frame: %.200q, %v", text, err)
	}
	eventually(t, "nothing is held", func() bool { return s.Held() == 0 })
	if _, err := client.Put(t.Context(), "t", "b", map[string]string{"text": strings.Repeat("x", 600<<10)}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	resp, err := http.Get("http://" + addr + "/v1/tables/t/count")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), `"rows":2`) {
		t.Errorf("%s", text)
	}
}
