package emulator

import (
	"context"
	"errors"
	"testing"

	"skerry/internal/link"
)

func TestChoose(t *testing.T) {
	missing := errors.New("missing")
	fast, slow, gone := fake{"fast", nil}, fake{"slow", nil}, fake{"gone", missing}
	tests := []struct {
		asked     string
		from      []Kind
		want, why string
	}{
		{"", []Kind{fast, slow}, "fast", "the kernel has it"},
		{"auto", []Kind{gone, slow}, "slow", "missing"},
		{"slow", []Kind{fast, slow}, "slow", "it was asked for"},
	}
	for _, tt := range tests {
		k, why, err := Choose(tt.asked, tt.from)
		if err != nil || k.Name() != tt.want || why != tt.why {
			t.Errorf("%q: %v because %q, %v; want %s because %q", tt.asked, k, why, err, tt.want, tt.why)
		}
	}
	if _, _, err := Choose("gone", []Kind{fast, gone}); !errors.Is(err, missing) {
		t.Errorf("a missing engine: %v", err)
	}
	if _, _, err := Choose("other", []Kind{fast}); err == nil {
		t.Error("an unknown engine was chosen")
	}
}

func TestUnmet(t *testing.T) {
	jittery := []link.Spec{{ID: "a~b"}, {ID: "a~c", BA: link.Quality{Latency: 2, Jitter: 1}}}
	if got := Unmet(Netem, jittery); len(got) != 1 {
		t.Errorf("netem with jitter: %q, want one note", got)
	}
	if got := append(Unmet(Netem, jittery[:1]), Unmet(Userspace, jittery)...); len(got) > 0 {
		t.Errorf("netem without jitter, userspace with it: %q", got)
	}
}

type fake struct {
	named string
	lack  error
}

func (f fake) Name() string { return f.named }

func (f fake) Available() error { return f.lack }

func (f fake) Start(context.Context, Env) (RunningEngine, error) {
	return RunningEngine{}, errors.ErrUnsupported
}

func (f fake) Connect(context.Context, Env, []link.Spec) (RunningEngine, error) {
	return RunningEngine{}, errors.ErrUnsupported
}
