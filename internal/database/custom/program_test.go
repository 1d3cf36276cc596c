package custom

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load"
)

// asProgram turns this test binary into the program of a client: it keeps records in memory and misbehaves for certain
// keys.
const asProgram = "SKERRY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		serveLines()
		return
	}
	os.Exit(m.Run())
}

func serveLines() {
	records := make(map[string]map[string][]byte)
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, "no JSON:", err)
			os.Exit(1)
		}
		a := reply{ID: r.ID, Status: "ok"}
		record, there := records[r.Key]
		switch {
		case r.Op == "open" && r.Properties["fail"] != "":
			fmt.Fprintln(os.Stderr, "the reason why")
			a = reply{ID: r.ID, Status: "failed", Class: "auth", Message: "no"}
		case r.Op == "close":
			return
		case r.Key == "die":
			fmt.Fprintln(os.Stderr, "dying")
			os.Exit(3)
		case r.Key == "hang":
			// The Go runtime ends a program that waits for nothing as deadlocked.
			for {
				time.Sleep(time.Hour)
			}
		case r.Key == "babble":
			fmt.Println("hello")
			continue
		case r.Key == "twice":
			_ = out.Encode(a) // a second answer follows
		case r.Key == "refused", r.Key == "doubtful":
			a = reply{ID: r.ID, Status: map[string]string{"refused": "failed", "doubtful": "unknown"}[r.Key], Class: "busy", Node: "n2", Message: "later"}
		case r.Key == "odd":
			a.Status = "perhaps"
		case r.Op == "read" && there:
			a.Values = make(map[string][]byte)
			for name, value := range record {
				if len(r.Fields) == 0 || strings.Contains(strings.Join(r.Fields, " "), name) {
					a.Values[name] = value
				}
			}
		case r.Op == "insert", r.Op == "update" && there:
			if !there {
				record = make(map[string][]byte)
				records[r.Key] = record
			}
			for name, value := range r.Values {
				record[name] = value
			}
		case r.Op == "delete" && there:
			delete(records, r.Key)
		case r.Op == "scan" && r.Count > 100:
			a.Status = "unsupported"
		case r.Op == "scan":
			for key, record := range records {
				a.Records = append(a.Records, scanRecord{key, record})
			}
		case r.Op != "open":
			a.Status = "not_found"
		}
		_ = out.Encode(a) // fails only if the reader has gone
	}
}

func openTest(t *testing.T, properties map[string]string) (load.Client, error) {
	t.Helper()
	t.Setenv(asProgram, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv, err := json.Marshal([]string{self})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{PropProgram: string(argv)}
	for k, v := range properties {
		all[k] = v
	}
	return Open(t.Context(), builtins{}, all)
}

func TestProgram(t *testing.T) {
	c, err := openTest(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := c.Read(ctx, "t", "user1", nil, nil); !errors.Is(err, load.ErrNotFound) {
		t.Errorf("read of a missing record: %v", err)
	}
	value := []byte{0, 0xff, '\n'}
	if err := c.Insert(ctx, "t", "user1", []load.Field{{Name: "a", Value: value}, {Name: "b", Value: []byte{}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(ctx, "t", "user1", []load.Field{{Name: "b", Value: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Read(ctx, "t", "user1", []string{"a"}, nil)
	if d := cmp.Diff([]load.Field{{Name: "a", Value: value}}, got); err != nil || d != "" {
		t.Errorf("read: %v %s", err, d)
	}
	n, err := c.Scan(ctx, "t", "user", 10, nil, func(key string, fields []load.Field) {
		if key != "user1" || len(fields) != 2 {
			t.Errorf("scan saw %s %v", key, fields)
		}
	})
	if n != 1 || err != nil {
		t.Errorf("scan: %d, %v", n, err)
	}
	if _, err := c.Scan(ctx, "t", "user", 1000, nil, nil); !errors.Is(err, load.ErrUnsupported) {
		t.Errorf("unsupported scan: %v", err)
	}
	if err := c.Delete(ctx, "t", "user1"); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, "t", "user1"); !errors.Is(err, load.ErrNotFound) {
		t.Errorf("delete of a missing record: %v", err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

// The program makes every possible mistake; the next operation uses another process.
func TestFailingProgram(t *testing.T) {
	c, err := openTest(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, test := range []struct {
		key     string
		outcome load.Outcome
		class   string
		says    string
	}{
		{"refused", load.NotDone, "busy", "later"}, {"doubtful", load.InDoubt, "busy", "later"},
		{"odd", load.InDoubt, "protocol", "perhaps"}, {"die", load.InDoubt, "program", "dying"},
		{"hang", load.InDoubt, "timeout", "deadline"}, {"babble", load.InDoubt, "program", "hello"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if test.key == "hang" {
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
		}
		err := c.Delete(ctx, "t", test.key)
		cancel()
		var e *load.OpError
		if !errors.As(err, &e) || e.Outcome != test.outcome || e.Class != test.class || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %#v, %v; want %v %s with %q", test.key, e, err, test.outcome, test.class, test.says)
		}
		if err := c.Insert(t.Context(), "t", "user1", nil); err != nil {
			t.Fatalf("after %s: %v", test.key, err)
		}
	}
	// An unexpected answer is not used for the next request.
	if err := c.Insert(t.Context(), "t", "twice", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), "t", "nobody"); !errors.Is(err, errProtocol) {
		t.Errorf("after an extra answer: %v", err)
	}
}

func TestUnopenableProgram(t *testing.T) {
	_, err := openTest(t, map[string]string{"fail": "yes"})
	if err == nil || !strings.Contains(err.Error(), "the reason why") {
		t.Errorf("error %v", err)
	}
	text, err := json.Marshal([]string{"/nonexistent/program"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), builtins{}, map[string]string{PropProgram: string(text)}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: error %v", err)
	}
}
