package lab

import (
	"context"
	"errors"
	"testing"

	"skerry/internal/link"
)

func TestChoose(t *testing.T) {
	missing := errors.New("missing")
	fast, slow, gone := fakeBackend{"fast", nil}, fakeBackend{"slow", nil}, fakeBackend{"gone", missing}
	tests := []struct {
		asked     string
		from      []backend
		want, why string
	}{
		{"", []backend{fast, slow}, "fast", "the kernel has it"},
		{"auto", []backend{gone, slow}, "slow", "missing"},
		{"slow", []backend{fast, slow}, "slow", "it was asked for"},
	}
	for _, tt := range tests {
		b, why, err := choose(tt.asked, tt.from)
		if err != nil || b.name() != tt.want || why != tt.why {
			t.Errorf("%q: %v because %q, %v; want %s because %q", tt.asked, b, why, err, tt.want, tt.why)
		}
	}
	if _, _, err := choose("gone", []backend{fast, gone}); !errors.Is(err, missing) {
		t.Errorf("an engine that is missing: %v", err)
	}
	if _, _, err := choose("other", []backend{fast}); err == nil {
		t.Error("an engine nobody knows was chosen")
	}
}

type fakeBackend struct {
	named string
	lack  error
}

func (f fakeBackend) name() string { return f.named }

func (f fakeBackend) available() error { return f.lack }

func (f fakeBackend) start(context.Context, engineEnv) (running, error) {
	return running{}, errors.ErrUnsupported
}

func (f fakeBackend) connect(context.Context, engineEnv, []link.Spec) (running, error) {
	return running{}, errors.ErrUnsupported
}
