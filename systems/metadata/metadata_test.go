package metadata_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]metadata.Command{
		"ls /":                            {Op: metadata.List, Path: "/"},
		"ls -l -n 5 -a x /a/":             {Op: metadata.List, Path: "/a", Limit: 5, After: "x", Long: true},
		"mkdir -p -m 700 /a/b":            {Op: metadata.Mkdir, Path: "/a/b", Parents: true, Mode: 0o700},
		`mkdir "/my dir/it's"`:            {Op: metadata.Mkdir, Path: "/my dir/it's", Mode: 0o755},
		`mkdir '/a "b" \ c'`:              {Op: metadata.Mkdir, Path: `/a "b" \ c`, Mode: 0o755},
		`mkdir /a\ b`:                     {Op: metadata.Mkdir, Path: "/a b", Mode: 0o755},
		"mkdir /-p":                       {Op: metadata.Mkdir, Path: "/-p", Mode: 0o755},
		"mv -f /a /b":                     {Op: metadata.Move, Path: "/a", To: "/b", Replace: true},
		"chmod 0 /a":                      {Op: metadata.Chmod, Path: "/a"},
		`write /a "x\n\"\x00"`:            {Op: metadata.Write, Path: "/a", Mode: 0o644, Data: []byte("x\n\"\x00")},
		`write /a "-x"`:                   {Op: metadata.Write, Path: "/a", Mode: 0o644, Data: []byte("-x")},
		"find -name *.go -type f /src":    {Op: metadata.Find, Path: "/src", Pattern: "*.go", Kind: metadata.File},
		"find -maxdepth 0 /":              {Op: metadata.Find, Path: "/"},
		"touch -t 1970-01-01T00:00:01Z /": {Op: metadata.Touch, Path: "/", Time: 1e9},
		" \tstat   /é ":                   {Op: metadata.Stat, Path: "/é"},
		"delegate /a host:1":              {Op: metadata.Delegate, Path: "/a", Owner: "host:1"},
	} {
		got, err := metadata.Parse(line)
		if want.Op != metadata.Find || strings.Contains(line, "type") {
			want.MaxDepth = -1
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", 256)
	for line, want := range map[string]error{
		"": metadata.ErrInvalid, "dir /": metadata.ErrInvalid, "ls": metadata.ErrInvalid, "ls a": metadata.ErrInvalid,
		"ls /a/../b": metadata.ErrInvalid, "ls /./a": metadata.ErrInvalid, "ls //a": metadata.ErrInvalid,
		"ls /a /b": metadata.ErrInvalid, "mv /a": metadata.ErrInvalid, "mkdir -r /a": metadata.ErrInvalid,
		"ls -n 0 /": metadata.ErrInvalid, "ls -n 10001 /": metadata.ErrInvalid, "ls -n": metadata.ErrInvalid,
		"mkdir /a\xff": metadata.ErrInvalid, "mkdir /a\x00b": metadata.ErrInvalid, "mkdir /a\u0085": metadata.ErrInvalid,
		`mkdir "/a\nb"`: metadata.ErrInvalid, `mkdir "/a`: metadata.ErrInvalid, `mkdir /a\`: metadata.ErrInvalid,
		`mkdir "/\xzz"`:  metadata.ErrInvalid,
		"mkdir /" + long: metadata.ErrTooLong, "ls " + strings.Repeat("/a", 1001): metadata.ErrTooLong,
		"ls /" + strings.Repeat("a", 4096): metadata.ErrTooLong,
		"rmdir /":                          metadata.ErrInvalid, "rm -r /": metadata.ErrInvalid, "mv / /a": metadata.ErrInvalid,
		"mv /a /a/b": metadata.ErrInvalid, "mv /a /": metadata.ErrExists,
		"chmod 9 /": metadata.ErrInvalid, "chmod 10000 /": metadata.ErrInvalid, "find -name [ /": metadata.ErrInvalid,
		"write /a " + strings.Repeat("x", metadata.MaxFile+1): metadata.ErrTooLong,
	} {
		if c, err := metadata.Parse(line); !errors.Is(err, want) {
			t.Errorf("%.60q: %+v, error %v, want %v", line, c, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"ls -l /a", `mkdir -p "/a b/\xc3\xa9"`, "find -name '*' -type d -maxdepth 3 -n 4 -a /x /",
		"write -x -m 600 /f 'text'", "mv -f /a /b", "touch -t 2006-01-02T15:04:05.5Z /a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := metadata.Parse(line)
		if err != nil {
			if status := metadata.HTTPStatus(err); status < 400 || status > 499 {
				t.Fatalf("%q: status %d of %v", line, status, err)
			}
			return
		}
		again, err := metadata.Parse(c.String())
		if err != nil {
			t.Fatalf("%q: %q: %v", line, c.String(), err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatalf("%q: %q: %s", line, c.String(), diff)
		}
		if !c.Op.Changes() {
			return
		}
		back, err := metadata.ParseRecord(c.AppendRecord(nil))
		if err != nil || back.String() != c.String() {
			t.Fatalf("%q: record %q, %v", line, back.String(), err)
		}
	})
}

func FuzzParseRecord(f *testing.F) {
	c, _ := metadata.Parse("mv -f /a /b")
	f.Add(c.AppendRecord(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := metadata.ParseRecord(b); err == nil && len(c.AppendRecord(nil)) > len(b) {
			t.Fatalf("%q is longer than %q", c.AppendRecord(nil), b)
		}
	})
}

func TestHTTPStatus(t *testing.T) {
	for err, want := range map[error]int{
		nil: 200, &metadata.Error{Path: "/", Err: metadata.ErrNotFound}: 404, metadata.ErrExists: 409, metadata.ErrNotEmpty: 409,
		metadata.ErrNotDirectory: 400, metadata.ErrInvalid: 400, metadata.ErrTooLong: 414, errors.New("disk"): 503,
		&metadata.ElsewhereError{At: "/a", Owner: "b"}: 421,
	} {
		if got := metadata.HTTPStatus(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
		if err == nil {
			continue
		}
		if back := metadata.DecodeError(metadata.ErrorCode(err), err.Error()); metadata.HTTPStatus(back) != want || back.Error() != err.Error() {
			t.Errorf("%v comes back as %v", err, back)
		}
	}
}

// TestErrorCodeOfLockTimeout checks that a client whose command timed out on a lock, or whose own transaction was
// aborted, learns that it may repeat the command, also over the network.
func TestErrorCodeOfLockTimeout(t *testing.T) {
	held := &metadata.HeldError{Path: "/a", Txn: "1", Coordinator: "g1"}
	for _, why := range []error{held, metadata.ErrAborted} {
		err := fmt.Errorf("%w: nothing was changed: %w", metadata.ErrUnavailable, why)
		if got := metadata.DecodeError(metadata.ErrorCode(err), err.Error()); !errors.Is(got, metadata.ErrUnavailable) ||
			got.Error() != err.Error() {
			t.Errorf("%v: sent as %q, read as %v", err, metadata.ErrorCode(err), got)
		}
	}
	if code := metadata.ErrorCode(held); code != "locked" {
		t.Errorf("servers get %q for a held lock", code)
	}
}
