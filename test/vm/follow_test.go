package vm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFollow(t *testing.T) {
	tests := []struct {
		name    string
		console string
		lines   []string
		ended   int
		failed  []string // failed programs
	}{
		{"nothing", "", nil, 0, nil},
		{"panic", "Kernel panic\r\n", []string{"Kernel panic"}, 0, nil},
		{"success", "hello\r\n" + endMark + "a: exit status 0\r\n", []string{"hello"}, 1, nil},
		{"failures", endMark + "a: exit status 1\n" + endMark + "b: exit status 0\n" + endMark + "c: signal: killed\n",
			nil, 3, []string{"a", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			failed, ended, err := follow(strings.NewReader(tt.console), func(l string) { lines = append(lines, l) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			var first *ExitError
			if errors.As(failed, &first) != (len(tt.failed) > 0) || first != nil && first.Program != tt.failed[0] {
				t.Errorf("failed = %v, want %v to have failed", failed, tt.failed)
			}
			if ended != tt.ended {
				t.Errorf("%d programs ended, want %d", ended, tt.ended)
			}
		})
	}
}
