package testkit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ended is a test that only records how it ended.
type ended struct {
	testing.TB
	how []string
}

func (e *ended) Helper() {}
func (e *ended) Skipf(format string, args ...any) {
	e.how = append(e.how, "skip: "+fmt.Sprintf(format, args...))
}
func (e *ended) Fatalf(format string, args ...any) {
	e.how = append(e.how, "fail: "+fmt.Sprintf(format, args...))
	panic(e)
}

// A missing feature skips a test, and fails it if the feature is required.
func TestNeedAndLacks(t *testing.T) {
	here := Feature{"here", func() string { return "" }}
	gone := Feature{"gone", func() string { return "not found" }}
	ways := map[string]func(testing.TB){
		"need":  func(tb testing.TB) { Need(tb, here, gone) },
		"lacks": func(tb testing.TB) { Lacks(tb, Ability("gone"), errors.New("not found")) },
		"has":   func(tb testing.TB) { Need(tb, here) },
	}
	for require, want := range map[string]map[string][]string{
		"":           {"need": {"skip: needs gone: not found"}, "lacks": {"skip: needs gone: not found"}, "has": nil},
		"here,other": {"need": {"skip: needs gone: not found"}, "lacks": {"skip: needs gone: not found"}, "has": nil},
		"root,gone": {
			"need":  {"fail: needs gone, which SKERRY_REQUIRE lists as installed: not found"},
			"lacks": {"fail: needs gone, which SKERRY_REQUIRE lists as installed: not found"},
			"has":   nil,
		},
	} {
		t.Setenv("SKERRY_REQUIRE", require)
		got := make(map[string][]string)
		for name, way := range ways {
			e := &ended{TB: t}
			func() {
				defer func() { _ = recover() }() // as FailNow ends a test
				way(e)
			}()
			got[name] = e.how
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("SKERRY_REQUIRE=%s (-want +got):\n%s", require, diff)
		}
	}
}

// A test that runs on demand skips unless it is requested.
func TestOptIn(t *testing.T) {
	for value, want := range map[string][]string{
		"":   {"skip: asked for by SKERRY_THIS: 5m runs it for five minutes"},
		"5m": nil,
	} {
		t.Setenv("SKERRY_THIS", value)
		e := &ended{TB: t}
		if got := OptIn(e, "SKERRY_THIS", "5m runs it for five minutes"); got != value {
			t.Errorf("SKERRY_THIS=%q: Asked gives %q", value, got)
		}
		if diff := cmp.Diff(want, e.how); diff != "" {
			t.Errorf("SKERRY_THIS=%q (-want +got):\n%s", value, diff)
		}
	}
}
