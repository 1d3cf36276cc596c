package netem_test

import (
	"errors"
	"log/slog"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/link/netem"
	"skerry/test/testkit"
)

// lacking is a kernel without netem.
var lacking = testkit.Feature{Name: "a kernel without netem", Missing: func() string {
	if netem.Available() == nil {
		return "the running kernel"
	}
	return ""
}}

func TestWithoutNetem(t *testing.T) {
	testkit.Need(t, testkit.Root, lacking)
	err := netem.Available()
	if !errors.Is(err, netem.ErrUnavailable) || advice.Of(err) == "" {
		t.Errorf("Available() = %v, advice %q; want ErrUnavailable with advice", err, advice.Of(err))
	}

	a, b := testkit.Namespace(t), testkit.Namespace(t)
	engine := netem.New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	err = engine.Create(t.Context(), []link.Spec{{
		ID: "a~b", A: link.End{Netns: a.Path(), Device: "a0"}, B: link.End{Netns: b.Path(), Device: "b0"},
	}})
	if err == nil {
		t.Error("Create succeeded without netem")
	}
	if a.HasDevice(t, "a0") || b.HasDevice(t, "b0") {
		t.Error("the failed Create left devices behind")
	}
	if err := engine.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
