package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stack is a report of the Go runtime.
const stack = `panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x8 pc=0x9f4c]

goroutine 1 [running]:
skerry/internal/database/postgres.(*client).Close(0x0)
	/src/internal/database/postgres/client.go:136 +0x1c
main.main()
	/src/cmd/skerry/main.go:17 +0x10b
`

func TestTail(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		n    int
		want string
	}{
		"no log":                               {"", 3, ""},
		"shorter":                              {"one\ntwo\n", 3, "one\ntwo"},
		"longer":                               {"one\ntwo\nthree\n", 2, "two\nthree"},
		"a crash":                              {"one\n" + stack, 1, "panic: runtime error: invalid memory address or nil pointer dereference"},
		"a crash within the limit":             {"one\n" + stack, 9, "one\n" + strings.TrimSpace(stack)},
		"a crash that did not end the process": {stack + "started again\n", 1, "started again"},
		"with other goroutines":                {"fatal error: all goroutines are asleep\n\ngoroutine 1 [chan receive]:\nmain.main()\n\t/src/main.go:4 +0x1\n", 2, "fatal error: all goroutines are asleep\n"},
		"a frame in another log":               {"failed at\n\t/src/main.go:4\n", 1, "\t/src/main.go:4"},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			if test.log != "" {
				if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := New(nil, "server", log).Tail(test.n); got != test.want {
				t.Errorf("the last %d lines: %q, want %q", test.n, got, test.want)
			}
		})
	}
}
