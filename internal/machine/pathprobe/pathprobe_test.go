package pathprobe

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	token := [tokenBytes]byte{1, 2, 3}
	l, err := Listen(token)
	if err != nil {
		t.Fatal(err)
	}
	o := Spec{Addr: fmt.Sprintf("127.0.0.1:%d", l.Port()), Token: token, Probes: 5, Every: time.Millisecond, Stream: 10 * time.Millisecond}
	r, err := Measure(t.Context(), o)
	if err != nil || r.Sent != 5 || r.Lost != 0 || r.Min <= 0 || r.Min > r.Median || r.Median > r.Max || r.Bandwidth <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	o.Course = true
	if r, err := Measure(t.Context(), o); err != nil || len(r.Course) != 5 || slices.Contains(r.Course, 0) || slices.Max(r.Course) != r.Max {
		t.Errorf("during the measurement: %+v, %v", r, err)
	}
	o.Token = [tokenBytes]byte{9}
	if r, err := Measure(t.Context(), o); !errors.Is(err, ErrNoAnswer) || r.Lost != 5 {
		t.Errorf("a stranger: %+v, %v", r, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	o.Token = token
	if _, err := Measure(t.Context(), o); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("after the end: %v", err)
	}
}
