package tail

import (
	"fmt"
	"testing"
)

func TestTail(t *testing.T) {
	last := New(8)
	if last.String() != "" {
		t.Errorf("empty input: got %q", last)
	}
	for i := range 100 {
		if n, err := fmt.Fprintf(last, "line %d\n", i); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := last.String(); got != "line 99" {
		t.Errorf("got %q", got)
	}
	fmt.Fprint(last, "a text longer than all that it keeps")
	if got := last.String(); got != "it keeps" {
		t.Errorf("got %q", got)
	}
}
