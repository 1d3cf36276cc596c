package database

import (
	"context"
	"strings"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/install"
	"skerry/internal/load"
)

// series is a database with several series.
type series struct{ upgrades Upgrades }

func (series) Name() string                                { return "able" }
func (series) Capabilities() Capabilities                  { return Capabilities{} }
func (series) Check(int, Options) error                    { return nil }
func (series) Find(string, string) (Installation, error)   { return Installation{}, nil }
func (series) Start(context.Context, Env) (Cluster, error) { return nil, ErrUnsupported }
func (s series) Upgrades() Upgrades                        { return s.upgrades }
func (series) Open(context.Context, map[string]string) (load.Client, error) {
	return nil, ErrUnsupported
}

func TestCheckUpgrade(t *testing.T) {
	d := series{Upgrades{
		Recipes: []install.Recipe{{Series: "3.10"}, {Series: "3.9"}, {Series: "3.8"}},
		Steps:   map[string][]string{"3.8": {"3.9"}, "3.9": {"3.10"}}, Rule: "one minor version at a time",
	}}
	for _, test := range []struct{ from, to, err, advice string }{
		{"3.8", "3.9", "", ""},
		{"3.9.4", "3.10", "", ""},
		{"3.8", "3.10", "from 3.8 to 3.10: one minor version at a time", "upgrade to able@3.9 first"},
		{"", "3.9", "from 3.10 to 3.9: a server does not start on the directory of a newer version", ""},
		{"", "3.10", "able 3.10 is the running version", "start with an older series"},
		{"3.8", "4", "able 4: no such series", "use one of 3.10, 3.9, 3.8"},
	} {
		err := CheckUpgrade(d, test.from, test.to)
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("from %q to %q: %v, want %q", test.from, test.to, err, test.err)
		}
		if !strings.Contains(advice.Of(err), test.advice) {
			t.Errorf("from %q to %q: advice %q, want %q", test.from, test.to, advice.Of(err), test.advice)
		}
	}
}
