package helperproc

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// An abandoned start is reported, wherever in the exchange the process was killed.
func TestCancelledStart(t *testing.T) {
	for name, job := range map[string]string{
		"while it receives its job":    strings.Repeat("x", 1<<20), // more than the capacity of a pipe
		"while waiting for its answer": "x",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			o := Options{Command: []string{"sleep", "1000"}, Owned: true, OnStart: func(int) error { cancel(); return nil }}
			if p, _, err := Start(ctx, o, job); !errors.Is(err, context.Canceled) {
				t.Errorf("Start = %v, %v, want Canceled", p, err)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	p, answer, err := Start(t.Context(), Options{Command: []string{"sh", "-c", "read job; echo got $job; exec sleep 1000"}, Owned: true}, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(answer); got != "got \"x\"\n" {
		t.Errorf("answered %q", got)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
}
