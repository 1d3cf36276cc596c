package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/server"
	"skerry/systems/metadata/store"
)

// serve runs a server with an empty tree under the host name m.
func serve(t *testing.T, o server.Options) string {
	t.Helper()
	_, addr := begin(t, o)
	return addr
}

func begin(t testing.TB, o server.Options) (*server.Server, string) {
	t.Helper()
	state := store.NewState()
	j, _, err := changelog.Open(t.TempDir(), state, changelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Hosts = []string{"m"}
	o.Status = func() protocol.Status {
		return protocol.Status{Tree: state.Tree().Counts(), Journal: j.Status(), Subtrees: state.Tree().VirtualOwners()}
	}
	o.Collectors = server.Collectors(o.Status)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := server.New(store.New(state, j), o)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, j.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func post(t *testing.T, addr, body string) (string, int) {
	t.Helper()
	answer, status, err := postText(http.DefaultClient, addr, body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, status
}

// postText posts a body of the text protocol.
func postText(c *http.Client, addr, body string) (answer string, status int, err error) {
	r, err := c.Post("http://"+addr+"/", "text/plain", strings.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(text), r.StatusCode, err
}

func TestProtocol(t *testing.T) {
	addr := serve(t, server.Options{})
	for _, step := range []struct {
		body, answer string
		status       int
	}{
		{"mkdir /a", "", 200},
		{"mkdir /a/b\n", "", 200},
		{"ls /a", "b\n", 200},
		{"ls /a\r\n", "b\n", 200},
		{"mkdir /a", "/a: exists\n", 409},
		{"mkdir /x/y", "/x/y: no such file or directory\n", 404},
		{"rmdir /a", "/a: directory is not empty\n", 409},
		{"write /a/f 'some text'", "", 200},
		{"read /a/f", "some text", 200},
		{"ls /a/f", "/a/f: not a directory\n", 400},
		{"mv /a/f '/a/my file'", "", 200},
		{"rm '/a/my file'", "", 200},
		{"ls", "invalid command: ls needs 1 operands\n", 400},
		{"rmdir /", "/: invalid: the root cannot be changed\n", 400},
		{"mv /a /a/b/c", "/a: invalid: cannot move a directory into itself, /a/b/c\n", 400},
		{"ls " + strings.Repeat("/a", 600_000), "path of 1200000 bytes: too long: at most 4096\n", 414},
		{"mkdir /p\nls /\nrmdir /nope\n\nls /p", "200 0\n200 4\na\np\n404 33\n/nope: no such file or directory\n200 0\n", 200},
		{"delegate /p other:1", "", 200},
		{"ls /p/q", "/p: is on another server: other:1\n", 421},
	} {
		if answer, status := post(t, addr, step.body); answer != step.answer || status != step.status {
			t.Errorf("%.60q: %d %q, want %d %q", step.body, status, answer, step.status, step.answer)
		}
	}
}

// TestPipeline sends many requests without waiting, split at arbitrary points.
func TestPipeline(t *testing.T) {
	addr := serve(t, server.Options{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var requests strings.Builder
	for i := range 600 {
		body := fmt.Sprintf("mkdir /%d", i)
		if i%100 == 99 {
			body = "stat /0\nstat /1"
		}
		fmt.Fprintf(&requests, "POST /any/path HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	go func() {
		for rest := requests.String(); rest != ""; {
			n := min(len(rest), 1+len(rest)%977)
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				return // the test reports it
			}
			rest = rest[n:]
		}
	}()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for i := range 600 {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 200 || (len(body) > 0) != (i%100 == 99) {
			t.Fatalf("answer %d: %d %q, %v", i, response.StatusCode, body, err)
		}
	}
	if answer, _ := post(t, addr, "ls -n 10000 /"); strings.Count(answer, "\n") != 594 {
		t.Errorf("%d directories", strings.Count(answer, "\n"))
	}
}

// TestLongListing lists more than a page: all of it without -n, and with -n one page and the start of the next.
func TestLongListing(t *testing.T) {
	addr := serve(t, server.Options{})
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "mkdir '/%05d x'\n", i)
	}
	post(t, addr, b.String())
	answer, status := post(t, addr, "ls /")
	if status != 200 || strings.Count(answer, "\n") != 2500 || !strings.HasSuffix(answer, "\n02499 x\n") {
		t.Errorf("%d, %d lines", status, strings.Count(answer, "\n"))
	}
	if answer, _ := post(t, addr, "find -type d /"); strings.Count(answer, "\n") != 2501 {
		t.Errorf("found %d", strings.Count(answer, "\n"))
	}
	after, pages := "", 0
	for {
		body := "ls -n 700 " + after + "/"
		response, err := http.Post("http://"+addr+"/", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		pages++
		next := response.Header.Get("Skerry-Next")
		if next == "" {
			break
		}
		after = "-a " + next + " "
	}
	if pages != 4 {
		t.Errorf("%d pages", pages)
	}
}

func TestBadInput(t *testing.T) {
	addr := serve(t, server.Options{MaxBody: 1000, Patience: 500 * time.Millisecond, Idle: 30 * time.Second})
	long := strings.Repeat("x", 2000)
	for name, request := range map[string]struct{ send, want string }{
		"a body that is too long": {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 2000\r\n\r\n" + long, "HTTP/1.1 413"},
		"a body without end":      {"POST / HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + long + "\r\n", "HTTP/1.1 413"},
		"a body that never comes": {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 20\r\n\r\nls", ""},
		"headers that never end":  {"POST / HTTP/1.1\r\nHost: m\r\nX-A: ", ""},
		"headers without end":     {"POST / HTTP/1.1\r\nHost: m\r\nX-A: " + strings.Repeat(long, 50), "HTTP/1.1 431"},
		"no HTTP":                 {"ls /\r\n\r\n", "HTTP/1.1 400"},
		"two lengths":             {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nls /x", "HTTP/1.1 400"},
		"no host":                 {"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nls /", "HTTP/1.1 400"},
		"a negative length":       {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: -4\r\n\r\nls /", "HTTP/1.1 400"},
		"another method":          {"DELETE / HTTP/1.1\r\nHost: m\r\n\r\n", "HTTP/1.1 405"},
		"an old client":           {"POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\nls /", "HTTP/1.0 200"},
		"not UTF-8":               {"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 9\r\n\r\nmkdir /\xff\xfe", "HTTP/1.1 400"},
		"usage":                   {"GET / HTTP/1.1\r\nHost: m\r\n\r\n", "HTTP/1.1 200"},
		"no such operation":       {"POST /v1/nothing HTTP/1.1\r\nHost: m\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 404"},
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, request.send) }() // the server may close first
		line, err := bufio.NewReader(c).ReadString('\n')
		if request.want == "" && strings.HasPrefix(line, "HTTP/1.1 4") {
			line, err = "", io.EOF // answered, then closed
		}
		if !strings.HasPrefix(line, request.want) || request.want == "" && err == nil {
			t.Errorf("%s: %q, %v; want %q", name, line, err, request.want)
		}
		c.Close()
	}
}

// TestTooManyConnections opens too many connections: the excess is closed, the others are served.
func TestTooManyConnections(t *testing.T) {
	addr := serve(t, server.Options{MaxConnections: 20})
	var kept []net.Conn
	defer func() {
		for _, c := range kept {
			c.Close()
		}
	}()
	refused := 0
	for range 60 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 4\r\n\r\nls /")
		if err == nil {
			_, err = bufio.NewReader(c).ReadString('\n')
		}
		if err != nil {
			refused++
		}
		kept = append(kept, c)
	}
	if refused != 40 {
		t.Errorf("%d refused", refused)
	}
}

func TestJSON(t *testing.T) {
	addr := serve(t, server.Options{})
	c := client.New(addr)
	defer c.Close()
	ctx := context.Background()
	var commands []metadata.Command
	for _, line := range []string{
		"mkdir -p -m 700 /a/b", `write /a/f "text\x00"`, "read /a/f", "ls -l /a", "stat /a", "chmod 0 /a", "find -maxdepth 0 -type d /a",
		"touch -t 2020-01-02T03:04:05.6Z /a", "stat /a", "rmdir /a", "mv -f /a /z", "delegate /z/b s:1", "ls /z/b/c", "rm -r /z",
	} {
		command, err := metadata.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, command)
	}
	r := c.Do(ctx, commands)
	for i, want := range map[int]error{0: nil, 1: nil, 9: metadata.ErrNotEmpty, 10: nil, 12: metadata.ErrElsewhere,
		13: metadata.ErrElsewhere} {
		if !errors.Is(r[i].Err, want) {
			t.Errorf("%s: %v", commands[i], r[i].Err)
		}
	}
	var elsewhere *metadata.ElsewhereError
	if !errors.As(r[12].Err, &elsewhere) || elsewhere.At != "/z/b" || elsewhere.Owner != "s:1" {
		t.Errorf("elsewhere: %+v", r[12].Err)
	}
	if string(r[2].Data) != "text\x00" || len(r[3].Entries) != 2 || r[3].Entries[1].Size != 5 || r[3].Entries[1].Kind != metadata.File {
		t.Errorf("read %q, listed %+v", r[2].Data, r[3].Entries)
	}
	if e := r[4].Entries[0]; e.Mode != 0o700 || e.Size != 2 || e.ID == 0 || e.Modified == 0 {
		t.Errorf("stat %+v", e)
	}
	if e := r[8].Entries[0]; e.Mode != 0 || e.Time().UTC().Format(time.RFC3339Nano) != "2020-01-02T03:04:05.6Z" {
		t.Errorf("stat %+v", e)
	}
	status, err := c.Status(ctx)
	if err != nil || status.Tree.Virtual != 1 || status.Subtrees["/z/b"] != "s:1" {
		t.Errorf("status %+v, %v", status, err)
	}
	for body, want := range map[string]int{
		`{"path":"/"}`: 200, `{"path":"/x"}`: 404, `{"path":"/","paht":1}`: 400, `{}`: 400, `[`: 400, `{"path":"/"} {}`: 400,
		`{"op":"rm","path":"/"}`: 400,
	} {
		response, err := http.Post("http://"+addr+"/v1/ls", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", body, response.StatusCode, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	addr := serve(t, server.Options{})
	post(t, addr, "mkdir /a")
	post(t, addr, "mkdir /a")
	post(t, addr, "nonsense")
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`skerry_metadata_commands_total{op="mkdir",status="200"} 1`, `skerry_metadata_commands_total{op="mkdir",status="409"} 1`,
		`skerry_metadata_commands_total{op="invalid",status="400"} 1`, `skerry_metadata_command_seconds_count{op="mkdir"} 2`,
		`skerry_metadata_directories 2`, `skerry_metadata_lock_wait_seconds_total 0`, `skerry_metadata_journal_records_total 1`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}
